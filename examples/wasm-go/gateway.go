package main

import (
	"encoding/binary"
	"encoding/json"
)

// The functions of the gateway that this module uses; ABI.md has all of them.

//go:wasmimport extism:host/env alloc
func alloc(length uint64) uint64

//go:wasmimport extism:host/env length
func length(block uint64) uint64

//go:wasmimport extism:host/env load_u8
func loadByte(offset uint64) uint32

//go:wasmimport extism:host/env store_u8
func storeByte(offset uint64, value uint32)

//go:wasmimport extism:host/env store_u64
func storeWord(offset uint64, value uint64)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputByte(offset uint64) uint32

//go:wasmimport extism:host/env output_set
func outputSet(block uint64, length uint64)

//go:wasmimport extism:host/env error_set
func errorSet(block uint64)

//go:wasmimport extism:host/env config_get
func configGet(key uint64) uint64

// readFrame gives head and body of the input.
func readFrame() (head, body []byte) {
	bytes := make([]byte, inputLength())
	for at := range bytes {
		bytes[at] = byte(inputByte(uint64(at)))
	}
	end := 4 + binary.LittleEndian.Uint32(bytes)
	return bytes[4:end], bytes[end:]
}

// writeFrame answers with a head and a body.
func writeFrame(head any, body []byte) {
	text, err := json.Marshal(head)
	if err != nil {
		fail(err.Error())
		return
	}
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	output(append(append(frame, text...), body...))
}

func output(bytes []byte) { outputSet(toBlock(bytes), uint64(len(bytes))) }

// fail makes the call a failed one, for this reason.
func fail(reason string) { errorSet(toBlock([]byte(reason))) }

// setting is a value of the module's configuration.
func setting(name, otherwise string) string {
	block := configGet(toBlock([]byte(name)))
	if block == 0 {
		return otherwise
	}
	bytes := make([]byte, length(block))
	for at := range bytes {
		bytes[at] = byte(loadByte(block + uint64(at)))
	}
	return string(bytes)
}

// toBlock copies bytes to the host, eight at a time.
func toBlock(bytes []byte) uint64 {
	block := alloc(uint64(len(bytes)))
	at := 0
	for ; at+8 <= len(bytes); at += 8 {
		storeWord(block+uint64(at), binary.LittleEndian.Uint64(bytes[at:]))
	}
	for ; at < len(bytes); at++ {
		storeByte(block+uint64(at), uint32(bytes[at]))
	}
	return block
}

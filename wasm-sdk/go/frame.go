package weir

import "encoding/binary"

const wordBytes = 8

// readFrame returns head and body of the input.
func readFrame() (head, body []byte) {
	bytes := make([]byte, hostInputLength())
	at := 0
	for ; at+wordBytes <= len(bytes); at += wordBytes {
		binary.LittleEndian.PutUint64(bytes[at:], hostInputWord(uint64(at)))
	}
	for ; at < len(bytes); at++ {
		bytes[at] = byte(hostInputByte(uint64(at)))
	}
	end := 4 + binary.LittleEndian.Uint32(bytes)
	return bytes[4:end], bytes[end:]
}

// toBlock copies bytes to a block of the gateway.
func toBlock(bytes []byte) uint64 {
	block := hostAlloc(uint64(len(bytes)))
	at := 0
	for ; at+wordBytes <= len(bytes); at += wordBytes {
		hostStoreWord(block+uint64(at), binary.LittleEndian.Uint64(bytes[at:]))
	}
	for ; at < len(bytes); at++ {
		hostStoreByte(block+uint64(at), uint32(bytes[at]))
	}
	return block
}

// takeBlock copies a block of the gateway and frees it; nil for no block.
func takeBlock(block uint64) []byte {
	if block == 0 {
		return nil
	}
	bytes := make([]byte, hostLength(block))
	at := 0
	for ; at+wordBytes <= len(bytes); at += wordBytes {
		binary.LittleEndian.PutUint64(bytes[at:], hostLoadWord(block+uint64(at)))
	}
	for ; at < len(bytes); at++ {
		bytes[at] = byte(hostLoadByte(block + uint64(at)))
	}
	hostFree(block)
	return bytes
}

func output(bytes []byte) { hostOutputSet(toBlock(bytes), uint64(len(bytes))) }

func outputFrame(head, body []byte) {
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(head)+len(body)), uint32(len(head)))
	output(append(append(frame, head...), body...))
}

// fail fails the call for a reason, which the gateway logs.
func fail(err error) int32 {
	hostErrorSet(toBlock([]byte(err.Error())))
	return 0
}

// with passes a text to a function of the gateway as a block and frees the block.
func with[T any](text string, call func(block uint64) T) T {
	block := toBlock([]byte(text))
	defer hostFree(block)
	return call(block)
}

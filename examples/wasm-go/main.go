// Package main lets requests in that name their team, and writes the name in small letters.
package main

import (
	"encoding/json"
	"strings"
)

// input is what this module reads of the head; other members are passed over.
type input struct {
	Request struct {
		Headers [][2]string `json:"headers"`
	} `json:"request"`
}

// answer is the head of an output.
type answer struct {
	Action     string      `json:"action"`
	Status     int         `json:"status,omitempty"`
	HeadersSet [][2]string `json:"headers_set,omitempty"`
}

//go:wasmexport describe
func describe() int32 {
	output([]byte(`{"abi":1,"needs":{"headers":["x-team"]},"on_failure":"closed"}`))
	return 0
}

//go:wasmexport on_request
func onRequest() int32 {
	head, _ := readFrame()
	var in input
	if err := json.Unmarshal(head, &in); err != nil {
		fail(err.Error())
		return 0
	}
	for _, header := range in.Request.Headers {
		if team := strings.ToLower(strings.TrimSpace(header[1])); header[0] == "x-team" && team != "" {
			writeFrame(answer{Action: "modify", HeadersSet: [][2]string{{"x-team", team}}}, nil)
			return 0
		}
	}
	message := setting("message", "say which team you are")
	writeFrame(answer{Action: "reject", Status: 400}, []byte(message))
	return 0
}

// main is never called: the gateway calls the exports.
func main() {}

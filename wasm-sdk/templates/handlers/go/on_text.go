package main

import (
	"strings"

	weir "weir-gateway/wasm-sdk/go"
)

//go:wasmexport on_text
func onText() int32 { return weir.HandleText(handleText) }

// handleText replaces the words of the setting words in answers of every format, also those that are split between pieces.
func handleText(_ *weir.Request, piece *weir.TextPiece) (*weir.TextAction, error) {
	var words []string
	for _, word := range strings.Split(weir.Config("words", ""), ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	text := piece.Text
	for _, word := range words {
		text = strings.ReplaceAll(text, word, "***")
	}
	end := len(text)
	if !piece.IsLast {
		for _, word := range words {
			end = min(end, len(text)-beginningAtEnd(text, word))
		}
	}
	return weir.PassText(text[:end]).Hold(text[end:]), nil
}

// beginningAtEnd returns the length of the longest end of the text that the word begins with, bytes.
func beginningAtEnd(text, word string) int {
	for length := min(len(text), len(word)-1); length > 0; length-- {
		if strings.HasSuffix(text, word[:length]) {
			return length
		}
	}
	return 0
}

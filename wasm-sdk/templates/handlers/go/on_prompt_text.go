package main

import (
	"strings"

	weir "weir-gateway/wasm-sdk/go"
)

//go:wasmexport on_prompt_text
func onPromptText() int32 { return weir.HandlePromptText(handlePromptText) }

// handlePromptText replaces the words of the setting words in prompts of every format.
func handlePromptText(_ *weir.Request, prompt *weir.Prompt) (*weir.Action, error) {
	for _, word := range strings.Split(weir.Config("words", ""), ",") {
		word = strings.TrimSpace(word)
		for index := range prompt.Texts {
			if one := &prompt.Texts[index]; word != "" {
				one.Text = strings.ReplaceAll(one.Text, word, "***")
			}
		}
	}
	return weir.Pass(), nil
}

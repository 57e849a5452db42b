package weir

import "strconv"

// The functions below are the bodies of exports: they read the input, run a handler and output its decision. A nil
// action passes.

// HandleRequest runs a handler for OnRequest.
func HandleRequest(handler func(*Request) (*Action, error)) int32 {
	return handle(func(in *input) (sender, error) {
		in.request.Body = in.body
		return handler(&in.request)
	})
}

// HandleResponse runs a handler for OnResponse.
func HandleResponse(handler func(*Request, *Response) (*Action, error)) int32 {
	return handle(func(in *input) (sender, error) {
		in.response.Body = in.body
		return handler(&in.request, &in.response)
	})
}

// HandleError runs a handler for OnError.
func HandleError(handler func(*Request, *Response, *ErrorInfo) (*Action, error)) int32 {
	return handle(func(in *input) (sender, error) {
		in.response.Body = in.body
		return handler(&in.request, &in.response, &in.err)
	})
}

// HandleStreamEvent runs a handler for OnStreamEvent.
func HandleStreamEvent(handler func(*Request, *Event) (*StreamAction, error)) int32 {
	return handle(func(in *input) (sender, error) {
		in.event.Data = string(in.body)
		in.event.State = in.state
		return handler(&in.request, &in.event)
	})
}

// HandleText runs a handler for OnText.
func HandleText(handler func(*Request, *TextPiece) (*TextAction, error)) int32 {
	return handle(func(in *input) (sender, error) {
		in.text.Text = string(in.body)
		return handler(&in.request, &in.text)
	})
}

// HandlePromptText runs a handler for OnPromptText. It replaces texts by assigning them; an action of Reject with a text refuses
// the prompt, and the text is the message of the error.
func HandlePromptText(handler func(*Request, *Prompt) (*Action, error)) int32 {
	return handle(func(in *input) (sender, error) {
		prompt, err := readPrompt(in.body, in.isQuestion)
		if err != nil {
			return nil, err
		}
		action, err := handler(&in.request, prompt)
		return &promptAction{action, prompt}, err
	})
}

// HandleToolCall runs a handler for OnToolCall. Only ID and Tenant of the request are set.
func HandleToolCall(handler func(*Request, *ToolCall) (*Action, error)) int32 {
	return handle(func(in *input) (sender, error) {
		in.tool.Arguments = in.body
		return handler(&in.request, &in.tool)
	})
}

// HandlePick runs a handler for OnPick, which returns the index of a candidate, or -1 for the default policy. Only
// Headers and Body of the request are set.
func HandlePick(handler func(*Request, *Pick) (int, error)) int32 {
	return handle(func(in *input) (sender, error) {
		in.request.Body = in.body
		index, err := handler(&in.request, &in.pick)
		return choice(index), err
	})
}

type sender interface{ send() }

type choice int

func (index choice) send() {
	if index >= 0 {
		writer := headWriter{}
		writer.raw("choice", strconv.Itoa(int(index)))
		outputFrame(writer.end(), nil)
	}
}

func handle(run func(*input) (sender, error)) int32 {
	in, err := readInput()
	if err != nil {
		return fail(err)
	}
	action, err := run(in)
	if err != nil {
		return fail(err)
	}
	action.send()
	return 0
}

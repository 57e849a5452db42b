package weir

// PromptText is one text of a request to a model.
type PromptText struct {
	// Role is user, assistant, system, tool or another; empty without one, such as in descriptions of tools.
	Role string
	// Place is where it is in the request to the worker, such as messages.2.content.0.text.
	Place string
	// Text may be assigned.
	Text string

	given string
}

// Prompt is the texts of a request to a model, each text of a role once.
type Prompt struct {
	Texts []PromptText
	// IsQuestion: the prompt is that of a question of a module, which may not ask again.
	IsQuestion bool
}

func readPrompt(body []byte, isQuestion bool) (*Prompt, error) {
	prompt := &Prompt{IsQuestion: isQuestion}
	reader := &headReader{text: body}
	reader.array(func() {
		var one PromptText
		reader.object(func(name string) {
			switch name {
			case "role":
				one.Role = reader.string()
			case "place":
				one.Place = reader.string()
			case "text":
				one.Text = reader.string()
			default:
				reader.skip()
			}
		})
		one.given = one.Text
		prompt.Texts = append(prompt.Texts, one)
	})
	if reader.isBad {
		return nil, errHead
	}
	return prompt, nil
}

type promptAction struct {
	action *Action
	prompt *Prompt
}

func (decision *promptAction) send() {
	if decision.action != nil && decision.action.action != "continue" {
		decision.action.send()
		return
	}
	var list []byte
	isChanged := false
	for index, one := range decision.prompt.Texts {
		list = append(list, separator(index))
		if one.Text == one.given {
			list = append(list, "null"...)
			continue
		}
		isChanged = true
		list = appendQuoted(list, one.Text)
	}
	if isChanged {
		Modify().WithText(string(append(list, ']'))).send()
	}
}

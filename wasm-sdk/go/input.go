package weir

import "strings"

// Headers are pairs of name and value in their order; repeated names are repeated.
type Headers [][2]string

// Get returns the first value of a name, in any case of its letters.
func (headers Headers) Get(name string) (value string, ok bool) {
	for _, header := range headers {
		if strings.EqualFold(header[0], name) {
			return header[1], true
		}
	}
	return "", false
}

// Request is the client's request. Members that the description does not ask for are empty.
type Request struct {
	ID     string
	Method string
	Path   string
	// Query is without the question mark.
	Query string
	// Route is the path as the route declares it, such as /v1/responses/:response_id.
	Route string
	// Tenant is empty for callers without a key.
	Tenant   string
	ClientIP string
	Headers  Headers
	// Body is passed to OnRequest and OnPick.
	Body []byte
	// NowMs is the time of the call, milliseconds since 1970.
	NowMs int64
	// State is the text that Action.Keep kept with a fetch.
	State string
	// Fetched is the result of the fetch that the previous call requested; nil in other calls.
	Fetched *Fetched
}

// Response is the response to the client.
type Response struct {
	Status   int
	Headers  Headers
	IsStream bool
	Body     []byte
}

// ErrorInfo describes an error of the gateway or of an engine.
type ErrorInfo struct {
	Code    string
	Message string
	Type    string
	Status  int
}

// Event is one event of a streamed response, or its end.
type Event struct {
	// Index counts from 0.
	Index int
	// Name is empty for an event without a name.
	Name string
	// IsEnd: the stream has ended; there are no data, but events may be added.
	IsEnd bool
	Data  string
	// State is the text that the previous call of this stream kept.
	State string
}

// TextPiece is one piece of a text of an answer, the same for every client format.
type TextPiece struct {
	// Text is what the last call of this text held back, followed by the new text. Tool arguments are JSON text as the
	// model wrote it.
	Text string
	// Kind is text, reasoning, refusal, tool_arguments, tool_output or citation.
	Kind string
	// Choice counts from 0.
	Choice int
	// CallID and CallName are those of the call that arguments or output belong to; empty for other kinds.
	CallID   string
	CallName string
	// IsLast: the text ends with this piece, and nothing can be held back.
	IsLast bool
}

// ToolCall is a tool call of a model that the gateway is about to run.
type ToolCall struct {
	// Kind is mcp or built_in.
	Kind string
	Name string
	// Label of the server in the request; empty for built-in tools.
	Label  string
	Server string
	// Model is empty if the request names none.
	Model string
	// Arguments are a JSON object.
	Arguments []byte
}

// Pick is the choice of a worker, or of a target of a virtual model.
type Pick struct {
	Model string
	// Leg is whole, prefill, decode or target.
	Leg string
	// BodyBytes is the size of the request body, even if it is not passed.
	BodyBytes  int
	Candidates []Candidate
}

// Candidate is a worker, or a target of a virtual model.
type Candidate struct {
	URL      string
	Labels   map[string]string
	Cost     float64
	InFlight int
	// Load is nil if there is no recent report of the engine.
	Load *Load
	// Model and Weight belong to targets.
	Model  string
	Weight float64
}

// Load is the last report of an engine; unknown members are -1.
type Load struct {
	QueuedTokens    float64
	UsedTokens      float64
	KvUsage         float64
	TokensPerSecond float64
}

// Fetched is the result of a fetch.
type Fetched struct {
	// Error is empty for a response; otherwise invalid, not_allowed, unreachable, timeout, too_large or busy.
	Error   string
	Status  int
	Headers Headers
	Body    []byte
}

// input is the head of a frame, and its body.
type input struct {
	state    string
	request  Request
	response Response
	err      ErrorInfo
	event    Event
	text     TextPiece
	tool     ToolCall
	pick     Pick
	// Of the prompt.
	isQuestion bool
	body       []byte
}

func readInput() (*input, error) {
	head, body := readFrame()
	in := &input{body: body}
	reader := &headReader{text: head}
	fetchedBytes := 0
	reader.object(func(name string) {
		switch name {
		case "now_ms":
			in.request.NowMs = int64(reader.number())
		case "state":
			in.state = reader.string()
		case "request":
			readRequest(reader, &in.request)
		case "response":
			readResponse(reader, &in.response)
		case "error":
			readError(reader, &in.err)
		case "event":
			readEvent(reader, &in.event)
		case "text":
			readText(reader, &in.text)
		case "prompt":
			reader.object(func(name string) {
				if name == "is_question" {
					in.isQuestion = reader.boolean()
				} else {
					reader.skip()
				}
			})
		case "tool":
			readTool(reader, &in.tool)
		case "pick":
			readPick(reader, &in.pick)
		case "fetched":
			in.request.Fetched, fetchedBytes = readFetched(reader)
		default:
			reader.skip()
		}
	})
	if reader.isBad || fetchedBytes > len(body) {
		return nil, errHead
	}
	in.request.State = in.state
	if in.request.Fetched != nil {
		// The gateway appends the fetched body to the body of the phase.
		split := len(body) - fetchedBytes
		in.request.Fetched.Body = body[split:]
		in.body = body[:split]
	}
	return in, nil
}

func readHeaders(reader *headReader) Headers {
	var headers Headers
	reader.array(func() {
		var pair [2]string
		index := 0
		reader.array(func() {
			pair[index&1] = reader.string()
			index++
		})
		headers = append(headers, pair)
	})
	return headers
}

func readRequest(reader *headReader, request *Request) {
	reader.object(func(name string) {
		switch name {
		case "id":
			request.ID = reader.string()
		case "method":
			request.Method = reader.string()
		case "path":
			request.Path = reader.string()
		case "query":
			request.Query = reader.string()
		case "route":
			request.Route = reader.string()
		case "tenant":
			request.Tenant = reader.string()
		case "client_ip":
			request.ClientIP = reader.string()
		case "headers":
			request.Headers = readHeaders(reader)
		default:
			reader.skip()
		}
	})
}

func readResponse(reader *headReader, response *Response) {
	reader.object(func(name string) {
		switch name {
		case "status":
			response.Status = reader.integer()
		case "headers":
			response.Headers = readHeaders(reader)
		case "is_stream":
			response.IsStream = reader.boolean()
		default:
			reader.skip()
		}
	})
}

func readError(reader *headReader, info *ErrorInfo) {
	reader.object(func(name string) {
		switch name {
		case "code":
			info.Code = reader.string()
		case "message":
			info.Message = reader.string()
		case "type":
			info.Type = reader.string()
		case "status":
			info.Status = reader.integer()
		default:
			reader.skip()
		}
	})
}

func readEvent(reader *headReader, event *Event) {
	reader.object(func(name string) {
		switch name {
		case "index":
			event.Index = reader.integer()
		case "name":
			event.Name = reader.string()
		case "is_end":
			event.IsEnd = reader.boolean()
		default:
			reader.skip()
		}
	})
}

func readText(reader *headReader, piece *TextPiece) {
	reader.object(func(name string) {
		switch name {
		case "kind":
			piece.Kind = reader.string()
		case "choice":
			piece.Choice = reader.integer()
		case "call_id":
			piece.CallID = reader.string()
		case "call_name":
			piece.CallName = reader.string()
		case "is_last":
			piece.IsLast = reader.boolean()
		default:
			reader.skip()
		}
	})
}

func readTool(reader *headReader, tool *ToolCall) {
	reader.object(func(name string) {
		switch name {
		case "kind":
			tool.Kind = reader.string()
		case "name":
			tool.Name = reader.string()
		case "label":
			tool.Label = reader.string()
		case "server":
			tool.Server = reader.string()
		case "model":
			tool.Model = reader.string()
		default:
			reader.skip()
		}
	})
}

func readPick(reader *headReader, pick *Pick) {
	reader.object(func(name string) {
		switch name {
		case "model":
			pick.Model = reader.string()
		case "leg":
			pick.Leg = reader.string()
		case "body_bytes":
			pick.BodyBytes = reader.integer()
		case "candidates":
			reader.array(func() { pick.Candidates = append(pick.Candidates, readCandidate(reader)) })
		default:
			reader.skip()
		}
	})
}

func readCandidate(reader *headReader) (one Candidate) {
	reader.object(func(name string) {
		switch name {
		case "url":
			one.URL = reader.string()
		case "model":
			one.Model = reader.string()
		case "weight":
			one.Weight = reader.number()
		case "cost":
			one.Cost = reader.number()
		case "in_flight":
			one.InFlight = reader.integer()
		case "labels":
			reader.object(func(name string) {
				if one.Labels == nil {
					one.Labels = map[string]string{}
				}
				one.Labels[name] = reader.string()
			})
		case "load":
			one.Load = readLoad(reader)
		default:
			reader.skip()
		}
	})
	return one
}

func readLoad(reader *headReader) *Load {
	if reader.next() != '{' {
		reader.skip()
		return nil
	}
	load := &Load{-1, -1, -1, -1}
	reader.object(func(name string) {
		switch name {
		case "queued_tokens":
			load.QueuedTokens = reader.number()
		case "used_tokens":
			load.UsedTokens = reader.number()
		case "kv_usage":
			load.KvUsage = reader.number()
		case "tokens_per_second":
			load.TokensPerSecond = reader.number()
		default:
			reader.skip()
		}
	})
	return load
}

func readFetched(reader *headReader) (fetched *Fetched, bodyBytes int) {
	fetched = &Fetched{}
	reader.object(func(name string) {
		switch name {
		case "error":
			fetched.Error = reader.string()
		case "status":
			fetched.Status = reader.integer()
		case "headers":
			fetched.Headers = readHeaders(reader)
		case "body_bytes":
			bodyBytes = reader.integer()
		default:
			reader.skip()
		}
	})
	return fetched, bodyBytes
}

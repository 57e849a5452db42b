package weir

import "strconv"

// Description declares what a module needs. It receives nothing else.
type Description struct {
	// Headers are names of request headers that are passed.
	Headers []string
	// AllHeaders passes all request headers without credentials.
	AllHeaders bool
	// Credentials passes also credentials with AllHeaders.
	Credentials bool
	// ClientIP passes the address of the client.
	ClientIP bool
	// RequestBody passes bodies of requests.
	RequestBody bool
	// ResponseHeaders are names of response headers that are passed.
	ResponseHeaders []string
	// AllResponseHeaders passes all response headers.
	AllResponseHeaders bool
	// ResponseBody passes bodies of responses that are not streams.
	ResponseBody bool
	// ReusesInstance keeps a warm instance per tenant and thread. By default each call starts from the initial state,
	// which the gateway restores without a start of the Go runtime.
	ReusesInstance bool
	// SharesInstance keeps a warm instance for all tenants.
	SharesInstance bool
	// FailsClosed rejects the request if the call fails; otherwise it continues without the module.
	FailsClosed bool
	// Settings of the module by name; registration then rejects unknown settings and invalid values.
	Settings map[string]Setting
}

// Setting declares one setting.
type Setting struct {
	// Type is text, integer, number, boolean or list. Default text.
	Type        string
	Required    bool
	Values      []string
	Description string
}

// Describe outputs the description. It is the body of the export describe.
func Describe(description Description) int32 {
	needs := headWriter{}
	writeNames(&needs, "headers", description.Headers, description.AllHeaders)
	writeNames(&needs, "response_headers", description.ResponseHeaders, description.AllResponseHeaders)
	needs.raw("client_ip", strconv.FormatBool(description.ClientIP))
	needs.raw("credentials", strconv.FormatBool(description.Credentials))
	needs.raw("request_body", strconv.FormatBool(description.RequestBody))
	needs.raw("response_body", strconv.FormatBool(description.ResponseBody))
	head := headWriter{}
	head.integer("abi", ABIVersion)
	head.raw("needs", string(needs.end()))
	switch {
	case description.SharesInstance:
		head.member("instance", "shared")
	case description.ReusesInstance:
		head.member("instance", "reuse")
	}
	if description.FailsClosed {
		head.member("on_failure", "closed")
	}
	if description.Settings != nil {
		settings := headWriter{}
		for name, setting := range description.Settings {
			settings.raw(name, string(setting.head()))
		}
		head.raw("settings", string(settings.end()))
	}
	output(head.end())
	return 0
}

func (setting Setting) head() []byte {
	head := headWriter{}
	head.member("type", setting.Type)
	if setting.Required {
		head.raw("required", "true")
	}
	if setting.Values != nil {
		head.texts("values", setting.Values)
	}
	head.member("description", setting.Description)
	return head.end()
}

func writeNames(head *headWriter, name string, names []string, all bool) {
	if all {
		head.raw(name, "true")
	} else {
		head.texts(name, names)
	}
}

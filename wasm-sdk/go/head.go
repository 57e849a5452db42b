package weir

import (
	"errors"
	"strconv"
	"unicode/utf8"
)

// Heads are read and written without encoding/json: its reflection costs more than the whole call, and the fuel of
// OnPick does not allow it.

var errHead = errors.New("the head of the input is not valid JSON")

// headReader reads JSON in one pass. isBad stays set after the first syntax error.
type headReader struct {
	text  []byte
	at    int
	isBad bool
}

// next skips white space and returns the next byte without consuming it; 0 at the end.
func (reader *headReader) next() byte {
	for reader.at < len(reader.text) {
		switch c := reader.text[reader.at]; c {
		case ' ', '\n', '\r', '\t':
			reader.at++
		default:
			return c
		}
	}
	return 0
}

func (reader *headReader) take(c byte) bool {
	if reader.next() != c {
		return false
	}
	reader.at++
	return true
}

// object calls each for the members of an object, which reads their values. Other values have no members.
func (reader *headReader) object(each func(name string)) {
	if !reader.take('{') {
		reader.skip()
		return
	}
	if reader.take('}') {
		return
	}
	for !reader.isBad {
		name := reader.string()
		if !reader.take(':') {
			break
		}
		each(name)
		if reader.take('}') {
			return
		}
		if !reader.take(',') {
			break
		}
	}
	reader.isBad = true
}

// array calls each for the elements of an array, which reads them. Other values have no elements.
func (reader *headReader) array(each func()) {
	if !reader.take('[') {
		reader.skip()
		return
	}
	if reader.take(']') {
		return
	}
	for !reader.isBad {
		each()
		if reader.take(']') {
			return
		}
		if !reader.take(',') {
			break
		}
	}
	reader.isBad = true
}

// string reads a string; empty for other values, such as null.
func (reader *headReader) string() string {
	if reader.next() != '"' {
		reader.skip()
		return ""
	}
	reader.at++
	from := reader.at
	for at := from; at < len(reader.text); at++ {
		switch reader.text[at] {
		case '"':
			reader.at = at + 1
			return string(reader.text[from:at])
		case '\\':
			return reader.escaped(from, at)
		}
	}
	reader.isBad = true
	return ""
}

func (reader *headReader) escaped(from, at int) string {
	text := append([]byte(nil), reader.text[from:at]...)
	for at < len(reader.text) {
		c := reader.text[at]
		switch {
		case c == '"':
			reader.at = at + 1
			return string(text)
		case c != '\\':
			text = append(text, c)
			at++
		case at+1 >= len(reader.text):
			at++
		case reader.text[at+1] == 'u':
			code := reader.hex(at + 2)
			at += 6
			if code >= 0xd800 && code < 0xdc00 && at+1 < len(reader.text) && reader.text[at] == '\\' && reader.text[at+1] == 'u' {
				code = 0x10000 + (code-0xd800)<<10 + reader.hex(at+2) - 0xdc00
				at += 6
			}
			text = utf8.AppendRune(text, code)
		default:
			text = append(text, unescape(reader.text[at+1]))
			at += 2
		}
	}
	reader.isBad = true
	return ""
}

func (reader *headReader) hex(at int) rune {
	if at+4 > len(reader.text) {
		return utf8.RuneError
	}
	code, err := strconv.ParseUint(string(reader.text[at:at+4]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(code)
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

// number reads a number; 0 for other values.
func (reader *headReader) number() float64 {
	reader.next()
	from := reader.at
	reader.skip()
	text := reader.text[from:reader.at]
	if whole, ok := toInteger(text); ok {
		return whole
	}
	number, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0
	}
	return number
}

func toInteger(text []byte) (float64, bool) {
	if len(text) == 0 || len(text) > 15 {
		return 0, false
	}
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	var whole int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		whole = whole*10 + int64(c-'0')
	}
	if len(digits) < len(text) {
		whole = -whole
	}
	return float64(whole), len(digits) > 0
}

func (reader *headReader) integer() int { return int(reader.number()) }

func (reader *headReader) boolean() bool {
	isTrue := reader.next() == 't'
	reader.skip()
	return isTrue
}

// skip passes over one value.
func (reader *headReader) skip() {
	reader.next()
	depth := 0
	for from := reader.at; reader.at < len(reader.text); {
		c := reader.text[reader.at]
		switch {
		case c == '"':
			reader.skipString()
		case c == '{' || c == '[':
			depth++
			reader.at++
		case (c == '}' || c == ']') && depth > 0:
			depth--
			reader.at++
		case depth == 0 && (c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			reader.isBad = reader.isBad || reader.at == from
			return
		default:
			reader.at++
			continue
		}
		if depth == 0 {
			return
		}
	}
	reader.isBad = reader.isBad || depth > 0
}

func (reader *headReader) skipString() {
	for reader.at++; reader.at < len(reader.text) && reader.text[reader.at] != '"'; reader.at++ {
		if reader.text[reader.at] == '\\' {
			reader.at++
		}
	}
	reader.at++
}

// headWriter writes one JSON object; the names of members need no escapes.
type headWriter struct{ text []byte }

func (writer *headWriter) name(name string) {
	if len(writer.text) == 0 {
		writer.text = append(writer.text, '{')
	} else {
		writer.text = append(writer.text, ',')
	}
	writer.text = append(append(append(writer.text, '"'), name...), '"', ':')
}

// member writes a text unless it is empty.
func (writer *headWriter) member(name, value string) {
	if value == "" {
		return
	}
	writer.name(name)
	writer.text = appendQuoted(writer.text, value)
}

func (writer *headWriter) raw(name, value string) {
	writer.name(name)
	writer.text = append(writer.text, value...)
}

// integer writes a number unless it is 0.
func (writer *headWriter) integer(name string, value int) {
	if value != 0 {
		writer.raw(name, strconv.Itoa(value))
	}
}

func (writer *headWriter) pairs(name string, pairs [][2]string) {
	if len(pairs) == 0 {
		return
	}
	writer.name(name)
	for index, pair := range pairs {
		writer.text = append(writer.text, separator(index), '[')
		writer.text = append(appendQuoted(writer.text, pair[0]), ',')
		writer.text = append(appendQuoted(writer.text, pair[1]), ']')
	}
	writer.text = append(writer.text, ']')
}

func (writer *headWriter) texts(name string, texts []string) {
	writer.name(name)
	for index, text := range texts {
		writer.text = appendQuoted(append(writer.text, separator(index)), text)
	}
	if len(texts) == 0 {
		writer.text = append(writer.text, '[')
	}
	writer.text = append(writer.text, ']')
}

func (writer *headWriter) end() []byte {
	if len(writer.text) == 0 {
		return []byte("{}")
	}
	return append(writer.text, '}')
}

func separator(index int) byte {
	if index == 0 {
		return '['
	}
	return ','
}

// Quote returns a text as a JSON string.
func Quote(text string) string { return string(appendQuoted(nil, text)) }

func appendQuoted(to []byte, text string) []byte {
	const hex = "0123456789abcdef"
	to = append(to, '"')
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c < 0x20:
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"mihf.dev/mihf"
)

// What a configuration may have at most, so that no file keeps a reader busy for long: the
// parser's work grows with the square of both.
const (
	maxBytes = 64 << 10
	maxKeys  = 1000 // with sections
)

// Known is what the program knows that this package doesn't.
type Known struct {
	Predictors []string // names of the methods, without [NoPredictor]
	Roles      []string // that grants give
}

// Error is one thing that is wrong with a configuration.
type Error struct {
	File   string
	Line   int    // 0: about the file as a whole, or about a key that is not given
	Key    string // dotted, for example "link.settle"; "": about the file
	Reason string // with what to do
}

func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&s, ":%d", e.Line)
	}
	if e.Key != "" {
		s.WriteString(": " + e.Key)
	}
	return s.String() + ": " + e.Reason
}

// Errors is all that was found, in the order of lines.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// shown makes what the file holds safe to print. Keys can hold any character, and are as
// long as somebody likes.
func shown(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "…"
	}
	return mihf.EscapeString(s)
}

// Load reads and checks a file. The error wraps fs.ErrNotExist where there is none, and is
// [Errors] where something is wrong with it.
func Load(path string, known Known) (Config, error) {
	f, err := os.Open(path) //nolint:gosec // the operator's own choice
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	defer func() { _ = f.Close() }() // was only read
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(path, data, known)
}

// Parse checks the text of a configuration; file is its name in errors, which are [Errors].
func Parse(file string, data []byte, known Known) (Config, error) {
	c := checker{file: file}
	if len(data) > maxBytes {
		c.fail("", "is larger than %d bytes; this is not a configuration of mihfd", maxBytes)
		return Config{}, c.errors
	}
	var raw rawConfig
	var few bool
	if c.lines, few = keyLines(data); !few {
		c.fail("", "has more than %d keys; this is not a configuration of mihfd", maxKeys)
		return Config{}, c.errors
	}
	if !c.decode(data, &raw) {
		return Config{}, c.sorted()
	}
	cfg := Defaults()
	raw.into(&c, &cfg, known)
	if len(c.errors) > 0 {
		return Config{}, c.sorted()
	}
	return cfg, nil
}

// decode fills raw and reports whether its values are worth checking: keys that are not
// known don't prevent that.
func (c *checker) decode(data []byte, raw *rawConfig) bool {
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(raw)
	if err == nil {
		return true
	}
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		for i := range strict.Errors {
			e := &strict.Errors[i]
			line, _ := e.Position()
			c.add(line, shown(strings.Join(e.Key(), ".")), unknownKey(e.Key()))
		}
		return true
	}
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := bad.Position()
		c.add(line, shown(strings.Join(bad.Key(), ".")), badValue(bad))
		return false
	}
	c.add(0, "", shown(err.Error()))
	return false
}

// badValue says what is wrong with a value that could not be decoded, or with the syntax.
func badValue(e *toml.DecodeError) string {
	reason := shown(strings.TrimPrefix(e.Error(), "toml: "))
	t := typeOf(e.Key())
	if t == nil || len(e.Key()) == 0 { // of a mistake in the syntax the key is not known
		return reason + "; see the sample: mihfd -sample"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	want := map[reflect.Kind]string{
		reflect.String: `a string in quotes, for example "30ms" for a duration`, reflect.Int: "a whole number", reflect.Float64: "a number",
		reflect.Bool: "true or false", reflect.Slice: "a list of numbers, for example [1000, 1001]", reflect.Struct: "a section",
		reflect.Uint32: "the number of a user",
	}[t.Kind()]
	if t == reflect.TypeFor[[]string]() {
		want = `a list of names, for example ["a", "b"]`
	}
	return "must be " + want
}

// unknownKey says which keys there are instead.
func unknownKey(key toml.Key) string {
	for n := len(key) - 1; n >= 0; n-- {
		t := typeOf(key[:n])
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		names := make([]string, t.NumField())
		for i := range names {
			names[i] = t.Field(i).Tag.Get("toml")
		}
		if n == 0 {
			return "no such section; there are " + strings.Join(names, ", ")
		}
		return fmt.Sprintf("no such key; [%s] has %s", strings.Join(key[:n], "."), strings.Join(names, ", "))
	}
	return "no such key"
}

// typeOf returns the type of a key's place in rawConfig, or nil. That of several sections
// of one name is that of one.
func typeOf(key toml.Key) reflect.Type {
	t := reflect.TypeFor[rawConfig]()
	for _, part := range key {
		if t.Kind() != reflect.Struct {
			return nil
		}
		i := slices.IndexFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("toml") == part })
		if i < 0 {
			return nil
		}
		t = t.Field(i).Type
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
			t = t.Elem()
		}
	}
	return t
}

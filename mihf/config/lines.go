package config

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// keyLines returns the line of each key and section of a document, by its dotted name; of
// several of one name, as [[access.grants]], the second is access.grants[1]. Of what comes after a mistake in the syntax it knows nothing. Where there are more than
// maxKeys, few is false and the rest was not read.
func keyLines(data []byte) (lines map[string]int, few bool) {
	lines = map[string]int{}
	left := maxKeys
	var p unstable.Parser
	p.Reset(data)
	var section []string
	several := map[string]int{}
	for left >= 0 && p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table:
			section = noteKey(&p, lines, nil, e)
			left--
		case unstable.ArrayTable:
			section = noteKey(&p, lines, nil, e)
			name := strings.Join(section, ".")
			section = []string{element(name, several[name])}
			lines[section[0]] = lines[name]
			several[name]++
			left--
		case unstable.KeyValue:
			noteKeyValue(&p, lines, section, e, &left)
		default: // comments
		}
	}
	return lines, left >= 0
}

func noteKeyValue(p *unstable.Parser, lines map[string]int, prefix []string, e *unstable.Node, left *int) {
	if *left--; *left < 0 {
		return
	}
	key := noteKey(p, lines, prefix, e)
	v := e.Value()
	if v.Kind == unstable.InlineTable {
		noteInline(p, lines, key, v, left)
	}
	if v.Kind != unstable.Array {
		return
	}
	name := strings.Join(key, ".")
	line, i := lines[name], 0
	for it := v.Children(); it.Next(); {
		if it.Node().Kind == unstable.InlineTable {
			section := []string{element(name, i)}
			lines[section[0]] = line
			noteInline(p, lines, section, it.Node(), left)
			i++
		}
	}
}

func noteInline(p *unstable.Parser, lines map[string]int, key []string, table *unstable.Node, left *int) {
	for it := table.Children(); it.Next(); {
		if it.Node().Kind == unstable.KeyValue {
			noteKeyValue(p, lines, key, it.Node(), left)
		}
	}
}

// element names the one of several.
func element(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

func noteKey(p *unstable.Parser, lines map[string]int, prefix []string, e *unstable.Node) []string {
	key := prefix[:len(prefix):len(prefix)]
	line := 0
	for it := e.Key(); it.Next(); {
		n := it.Node()
		key = append(key, string(n.Data))
		line = p.Shape(n.Raw).Start.Line
	}
	lines[strings.Join(key, ".")] = line
	return key
}

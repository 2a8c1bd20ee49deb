package config

import (
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// keyLines returns the line of each key and section of a document, by its dotted name. Of
// what comes after a mistake in the syntax it knows nothing. Where there are more than
// maxKeys, few is false and the rest was not read.
func keyLines(data []byte) (lines map[string]int, few bool) {
	lines = map[string]int{}
	left := maxKeys
	var p unstable.Parser
	p.Reset(data)
	var section []string
	for left >= 0 && p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			section = noteKey(&p, lines, nil, e)
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
	if v := e.Value(); v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				noteKeyValue(p, lines, key, it.Node(), left)
			}
		}
	}
}

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

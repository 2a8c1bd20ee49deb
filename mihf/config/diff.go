package config

import (
	"reflect"
	"slices"
	"strings"
)

// Live reports whether a change of the key takes effect without a restart.
func Live(key string) bool { return key == "log.level" || strings.HasPrefix(key, "access.") }

// Changed returns the dotted keys whose values differ, in the order of the sections.
func Changed(a, b *Config) []string {
	return changed("", reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem(), nil)
}

func changed(key string, a, b reflect.Value, keys []string) []string {
	if a.Kind() != reflect.Struct {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			keys = append(keys, key)
		}
		return keys
	}
	for i, f := range slices.All(reflect.VisibleFields(a.Type())) {
		name := f.Tag.Get("toml")
		if key != "" {
			name = key + "." + name
		}
		keys = changed(name, a.Field(i), b.Field(i), keys)
	}
	return keys
}

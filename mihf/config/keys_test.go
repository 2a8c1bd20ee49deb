package config_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"mihf.dev/mihf/config"
)

// needs is what a key is given with, so that every relation holds.
var needs = map[string]string{
	"grpc.listen": "grpc.cert = \"/c\"\ngrpc.key = \"/k\"\ngrpc.client_ca = \"/ca\"\n",

	"nats.listen":             "nats.server = \"embedded\"\nnats.users = \"/u\"\n",
	"nats.users":              "nats.server = \"embedded\"\n",
	"nats.leaf":               "nats.server = \"embedded\"\n",
	"nats.history":            "nats.server = \"embedded\"\n",
	"nats.history_dir":        "nats.server = \"embedded\"\n",
	"nats.trust_request_info": "nats.server = \"external\"\nnats.servers = [\"nats://a\"]\n",

	"link.threshold":  "link.rollback_below = 0.1\nlink.guard_threshold = 1.0\n",
	"hint.max_margin": "hint.min_margin = \"0s\"\n",
}

// values are tried for a key until one is good: each is of another type or size.
var values = []string{
	`"other"`, `"plain"`, `"embedded"`, `"registered"`, `["nats://127.0.0.1:4222"]`, `"session"`, `"json"`, `"warn"`, `"0600"`, `"/x"`, `":1"`, `"127.0.0.1:1"`, `"20ms"`, `"700ms"`, `"1500ms"`, `"7s"`, `"70s"`,
	"false", "true", "0.3", "0.95", "-70", "7", "100", "5000", "100000", "2000000", `["command"]`, `[{uids = [7], roles = ["see"]}]`,
}

// Every key of a file reaches its own place in the Config, and no other; a value that is
// far out of range is an error that names the key.
func TestEveryKeyIsRead(t *testing.T) {
	defaults := config.Defaults()
	for _, key := range keys("", reflect.TypeFor[config.Config]()) {
		read := slices.ContainsFunc(values, func(value string) bool {
			extra := needs[key]
			got, err := config.Parse("f", []byte(extra+key+" = "+value+"\n"), known)
			if err != nil {
				return false
			}
			with, err := config.Parse("f", []byte(extra), known)
			if err != nil {
				t.Fatal(err)
			}
			changed := config.Changed(&with, &got)
			if len(changed) > 0 && !slices.Equal(changed, []string{key}) {
				t.Errorf("%s = %s changes %v", key, value, changed)
			}
			return len(changed) > 0
		})
		if !read {
			t.Errorf("%s: no value of %v changes it", key, values)
		}
		for _, wrong := range []string{`"+1000h"`, "-1", "1e30", `"\u0000"`, "[-1]", `[""]`} {
			got, err := config.Parse("f", []byte(key+" = "+wrong+"\n"), known)
			if err == nil && !reflect.DeepEqual(got, defaults) {
				t.Errorf("%s = %s is taken", key, wrong)
			}
			if err != nil && !strings.Contains(err.Error(), key) {
				t.Errorf("%s = %s: %v does not name the key", key, wrong, err)
			}
		}
	}
}

package clients

import (
	"slices"
	"testing"
)

func TestDefaultAddress(t *testing.T) {
	const user = "/run/user/7/mihf/mihfd.sock"
	for _, tc := range []struct {
		name   string
		env    map[string]string
		exists []string
		want   string
	}{
		{"the environment decides", map[string]string{"MIHF_ADDRESS": "host:1"}, []string{SystemSocket}, "host:1"},
		{"the system's", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, []string{SystemSocket, user}, "unix://" + SystemSocket},
		{"the user's", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, []string{user}, "unix://" + user},
		{"none", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, nil, "unix://" + SystemSocket},
		{"the user's, where the variable is not set", nil, []string{user}, "unix://" + user},
		{"another directory's", map[string]string{"XDG_RUNTIME_DIR": "/x"}, []string{user}, "unix://" + SystemSocket},
		{"no user directory", nil, nil, "unix://" + SystemSocket},
	} {
		exists := func(p string) bool {
			return slices.Contains(tc.exists, p)
		}
		if got := defaultAddress(func(k string) string { return tc.env[k] }, 7, exists); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for _, tc := range []struct{ in, network, address string }{
		{"unix:///run/x.sock", "unix", "/run/x.sock"},
		{"host:4551", "tcp", "host:4551"},
		{"[2001:db8::1]:4551", "tcp", "[2001:db8::1]:4551"},
		{"unix://x", "", ""},
		{"unix:/run/x.sock", "", ""},
		{"/run/x.sock", "", ""},
		{"/run/x:1", "", ""},
		{"host", "", ""},
		{":1", "", ""},
		{"host:", "", ""},
		{"", "", ""},
	} {
		network, address, err := ParseAddress(tc.in)
		if network != tc.network || address != tc.address || (err == nil) != (tc.network != "") {
			t.Errorf("ParseAddress(%q) = %q, %q, %v", tc.in, network, address, err)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("unix:///run/x.sock")
	f.Add("host:1")
	f.Fuzz(func(t *testing.T, s string) {
		if network, address, err := ParseAddress(s); err == nil && (network == "" || address == "") {
			t.Errorf("%q: %q %q without an error", s, network, address)
		}
	})
}

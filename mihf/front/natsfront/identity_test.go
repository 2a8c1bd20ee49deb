package natsfront

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mihf.dev/mihf"
	"mihf.dev/proto/natsproto"
)

func said(values ...string) natsproto.Header {
	return natsproto.Header{natsproto.HeaderRequestInfo: values}
}

func TestIdentity(t *testing.T) {
	const key = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
	own := identity{trust: true, account: usersAccount, nkeys: map[string]string{key: "carol"}, other: "external"}
	theirs := identity{trust: true, other: "external"}
	nobodys := identity{other: "external"}
	jwt := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+key+`"}`)) + ".sig"
	for _, c := range []struct {
		what        string
		by          *identity
		h           natsproto.Header
		name, inbox string
	}{
		{"user", &own, said(`{"acc":"MIHF","user":"alice","kind":"Client"}`), "alice", "alice"},
		{"key", &own, said(`{"acc":"MIHF","user":"` + key + `","kind":"Client"}`), "carol", "carol"},
		{"leaf", &own, said(`{"acc":"MIHF","user":"root","kind":"Leafnode"}`), "external", ""},
		{"other account", &own, said(`{"acc":"X","user":"alice","kind":"Client"}`), "", ""},
		{"none", &own, nil, "", ""},
		{"twice", &own, said(`{"acc":"MIHF","user":"root"}`, `{"acc":"MIHF","user":"alice"}`), "", ""},
		{"garbage", &own, said(`{`), "", ""},
		{"no user", &own, said(`{"acc":"MIHF"}`), "", ""},
		{"no name", &own, said(`{"acc":"MIHF","user":"a b"}`), "", ""},
		{"huge", &own, said(`{"acc":"MIHF","user":"` + strings.Repeat("a", maxRequestInfo) + `"}`), "", ""},
		{"external user", &theirs, said(`{"acc":"FLEET","user":"alice","kind":"Client"}`), "alice", ""},
		{"external JWT", &theirs, said(`{"acc":"FLEET","user":"root","jwt":"` + jwt + `"}`), key, ""},
		{"external JWT that is none", &theirs, said(`{"acc":"FLEET","user":"root","jwt":"x"}`), "", ""},
		{"external, not said", &theirs, nil, "", ""},
		{"not trusted", &nobodys, said(`{"acc":"MIHF","user":"root"}`), "external", ""},
		{"not trusted, not said", &nobodys, nil, "external", ""},
	} {
		who, inbox, err := c.by.of(c.h)
		if c.name == "" {
			if !errors.Is(err, mihf.ErrPermission) {
				t.Errorf("%s: %+v, %v", c.what, who, err)
			}
			continue
		}
		if want := (mihf.Caller{Front: "nats", Name: c.name}); err != nil || who != want || inbox != c.inbox {
			t.Errorf("%s: %+v with inbox %q, %v; want %+v with %q", c.what, who, inbox, err, want, c.inbox)
		}
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add(`{"acc":"MIHF","user":"alice","kind":"Client"}`)
	f.Add(`{"jwt":"a.b.c"}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, i := range []*identity{{trust: true, account: usersAccount, other: "x"}, {trust: true, other: "x"}} {
			who, _, err := i.of(said(text))
			if err == nil && !validName(who.Name) {
				t.Errorf("caller %+v", who)
			}
			if err != nil && !errors.Is(err, mihf.ErrPermission) {
				t.Error(err)
			}
		}
		_ = fmt.Sprint(text)
	})
}

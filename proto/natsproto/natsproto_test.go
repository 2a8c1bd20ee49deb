package natsproto

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"mihf.dev/mihf"
	mihv1 "mihf.dev/proto/mih/v1"
)

// "A subject that it makes is one that NATS takes, whatever octets the names have":
// decode(encode(x)) == x, of every octet, and of none.
func TestToken(t *testing.T) {
	for name, want := range map[string]string{
		"": "_", "_": "%5F", "__": "__", "eth0.10": "eth0%2E10", "x*.>": "x%2A%2E%3E", "my lan": "my%20lan",
		"w\xff\xfe0": "w%FF%FE0", "wifi-3fa9c01d": "wifi-3fa9c01d", "%41": "%2541", "_%5F": "_%255F",
	} {
		if got := Token(name); got != want {
			t.Errorf("token of %q: %q, want %q", name, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := string(rapid.SliceOf(rapid.Byte()).Draw(t, "name"))
		token := Token(name)
		if token == "" || strings.Trim(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-%") != "" {
			t.Fatalf("%q is no token", token)
		}
		if back, err := ParseToken(token); err != nil || back != name {
			t.Fatalf("%q came back as %q, %v", name, back, err)
		}
	})
}

// A name has one spelling.
func TestParseTokenRefuses(t *testing.T) {
	for _, bad := range []string{"", "a.b", "%5f", "%41", "%4", "%", "%zz", "a b", "*", ">", "\xff", "%+1"} {
		if name, err := ParseToken(bad); !errors.Is(err, mihf.ErrInvalid) {
			t.Errorf("%q is read as %q, %v", bad, name, err)
		}
	}
}

// "ParseSubject gives the names back", and a subject has the tokens that its pattern says.
func TestSubjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		octets := rapid.SliceOfN(rapid.Byte(), 0, 40)
		node, name := mihf.NodeID(octets.Draw(t, "node")), string(octets.Draw(t, "name"))
		owner := rapid.Uint32().Draw(t, "owner")
		kind := mihf.Kind(rapid.IntRange(1, mihf.NumKinds-1).Draw(t, "kind"))
		hint := mihf.HintKind(rapid.IntRange(1, int(mihf.HintCharacteristics)).Draw(t, "hint"))
		for subject, want := range map[string]struct {
			tokens int
			Subject
		}{
			Event(node, mihf.LinkID(name), kind):            {6, Subject{Node: node, Class: ClassEvent, Name: name, Kind: kind.String()}},
			Hint(node, mihf.FlowID(name), hint):             {6, Subject{Node: node, Class: ClassHint, Name: name, Kind: hint.String()}},
			OwnerHint(node, owner, mihf.FlowID(name), hint): {7, Subject{Node: node, Class: ClassOwner, Owner: owner, Name: name, Kind: hint.String()}},
			Service(node, OpAck):                            {5, Subject{Node: node, Class: ClassService, Kind: OpAck}},
			Sync(node):                                      {4, Subject{Node: node, Class: ClassSync}},
		} {
			got, err := ParseSubject(subject)
			if err != nil || got != want.Subject {
				t.Errorf("%s is read as %+v, %v; want %+v", subject, got, err, want.Subject)
			}
			if n := strings.Count(subject, ".") + 1; n != want.tokens || strings.Contains(subject, "..") {
				t.Errorf("%s has %d tokens, want %d", subject, n, want.tokens)
			}
		}
	})
}

// The daemon must not be talked into publishing elsewhere than on the caller's inboxes.
func TestCheckInbox(t *testing.T) {
	for _, c := range []struct {
		subject, user string
		want          error
	}{
		{"_INBOX.alice.x.1", "alice", nil},
		{"_INBOX.bob.x", "alice", mihf.ErrPermission},
		{"_INBOX.alicex.x", "alice", mihf.ErrPermission},
		{"_INBOX.alice", "alice", mihf.ErrPermission},
		{"mih.v1.node.event.wifi-00000001.link_down", "alice", mihf.ErrPermission},
		{"", "alice", mihf.ErrPermission},
		{"_INBOX.alice.>", "alice", mihf.ErrInvalid},
		{"_INBOX.alice.*.x", "alice", mihf.ErrInvalid},
		{"_INBOX.alice..x", "alice", mihf.ErrInvalid},
		{"_INBOX.alice.x y", "alice", mihf.ErrInvalid},
		{"_INBOX.alice.x\r\nPUB", "alice", mihf.ErrInvalid},
		{"_INBOX.alice." + strings.Repeat("x", maxSubject), "alice", mihf.ErrInvalid},
		{"_INBOX.anything", "", nil},
		{"_INBOX_alice.x", "", nil},
		{"_INBOX", "", mihf.ErrPermission},
		{"mih.v1.node.sync", "", mihf.ErrPermission},
	} {
		if err := CheckInbox(c.subject, c.user); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%q for %q: %v, want %v", c.subject, c.user, err, c.want)
		}
	}
	if CheckReply("_R_.abc.def") != nil || CheckReply("_INBOX.a.b") != nil || CheckReply("mih.v1.node.sync") == nil {
		t.Error("what a server puts in the place of an inbox is to be answered on, and nothing else")
	}
}

// What an envelope says comes back.
func TestEnvelope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Envelope{
			Type:      rapid.SampledFrom([]Type{"", TypeEvent, TypeHint, TypeEnd}).Draw(t, "type"),
			Previous:  rapid.Uint64().Draw(t, "previous"),
			Held:      time.Duration(rapid.Int64Range(0, int64(maxHeld)).Draw(t, "held")),
			Conflated: rapid.Uint32().Draw(t, "conflated"),
			At:        mihf.Time(rapid.Int64Range(0, maxTime).Draw(t, "at")),
			Boot:      mihf.BootID(rapid.Uint32().Draw(t, "boot")),
			Sequence:  rapid.Uint64().Draw(t, "sequence"),
		}
		if rapid.Bool().Draw(t, "parts") {
			e.Part.Of = rapid.IntRange(2, maxParts).Draw(t, "of")
			e.Part.N = rapid.IntRange(1, e.Part.Of).Draw(t, "n")
		}
		got, err := ParseEnvelope(e.Header())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Error(diff)
		}
		if at := At(e.Header()); at != e.At {
			t.Errorf("at %v", at)
		}
	})
}

// "A value that makes no sense, or that is there twice, is an error and names the header."
func TestEnvelopeRefused(t *testing.T) {
	for key, bad := range map[string][]string{
		HeaderPrevious:  {"", "-1", "x", "18446744073709551616", "1\n2"},
		HeaderHeld:      {"-1", "1s", "86400000000001"},
		HeaderConflated: {"4294967296"},
		HeaderAt:        {"9223372036854775808"},
		HeaderSequence:  {"0x1"},
		HeaderBoot:      {"1", "zzzzzzzz", "0000000"},
		HeaderPart:      {"1", "0/2", "3/2", "1/2x", "1/99999", "+1/2", "/"},
	} {
		for _, v := range bad {
			h := Header{HeaderPrevious: {"1"}, key: {v}}
			if v == "" {
				delete(h, key)
			}
			if _, err := ParseEnvelope(h); !errors.Is(err, mihf.ErrInvalid) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %q: %v", key, v, err)
			}
		}
		h := Header{HeaderPrevious: {"1"}, key: {"1", "1"}}
		if _, err := ParseEnvelope(h); !errors.Is(err, mihf.ErrInvalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s twice: %v", key, err)
		}
	}
}

// A refusal gives back the error of the vocabulary that it was made of, in either coding.
func TestRefusals(t *testing.T) {
	for _, coding := range []Coding{AsProtobuf, AsJSON} {
		for _, kind := range []error{
			mihf.ErrPermission, mihf.ErrNotFound, mihf.ErrInvalid, mihf.ErrLimit, mihf.ErrExists, mihf.ErrSlow, mihf.ErrClosed,
			context.Canceled, context.DeadlineExceeded,
		} {
			why := fmt.Errorf("%w: flow \"x\"", kind)
			code, data, contentType := coding.Refuse(why)
			got := Refused(Header{HeaderError: {code}, HeaderContentType: {contentType}}, data)
			if !errors.Is(got, kind) || got.Error() != why.Error() {
				t.Errorf("%v came back as %v (%s)", why, got, code)
			}
		}
		code, data, contentType := coding.Refuse(errors.New("a mistake of ours"))
		if got := Refused(Header{HeaderError: {code}, HeaderContentType: {contentType}}, data); code != internal || !strings.Contains(got.Error(), "a mistake of ours") {
			t.Errorf("%s: %v", code, got)
		}
	}
	if err := Refused(Header{}, []byte("x")); err != nil {
		t.Error(err)
	}
	if err := Refused(Header{HeaderError: {"NOT_FOUND"}}, nil); !errors.Is(err, mihf.ErrNotFound) || err.Error() == "" {
		t.Errorf("without a text: %v", err)
	}
}

// The answer is written as the request is, or as it says.
func TestCodings(t *testing.T) {
	for _, c := range []struct {
		content, accept string
		json            bool
		answer          Coding
		ok              bool
	}{
		{"", "", false, AsProtobuf, true},
		{Protobuf, "", false, AsProtobuf, true},
		{JSON, "", true, AsJSON, true},
		{"application/json; charset=utf-8", "*/*", true, AsJSON, true},
		{"", JSON, false, AsJSON, true},
		{JSON, Protobuf, true, AsProtobuf, true},
		{"text/xml", "", false, AsProtobuf, false},
		{JSON, "text/xml", true, AsProtobuf, false},
		{";;", "", false, AsProtobuf, false},
	} {
		r, err := ParseRequest(Header{HeaderContentType: {c.content}, HeaderAccept: {c.accept}})
		if (err == nil) != c.ok || c.ok && (r.JSON != c.json || r.Answer != c.answer) {
			t.Errorf("%+v: %+v, %v", c, r, err)
		}
	}
}

func TestDecodeAndEncode(t *testing.T) {
	want := &mihv1.GetParametersRequest{Link: "wifi-00000001"}
	for _, coding := range []Coding{AsProtobuf, AsJSON} {
		data, _, err := coding.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{JSON: coding == AsJSON}
		var got mihv1.GetParametersRequest
		if err := r.Decode(data, &got); err != nil || !proto.Equal(want, &got) {
			t.Errorf("%v, %v", &got, err)
		}
		if err := r.Decode(nil, &got); err != nil {
			t.Errorf("no payload: %v", err)
		}
		if err := r.Decode([]byte("\xff{"), &got); !errors.Is(err, mihf.ErrInvalid) {
			t.Errorf("garbage: %v", err)
		}
		if err := r.Decode(make([]byte, MaxRequest+1), &got); !errors.Is(err, mihf.ErrLimit) {
			t.Errorf("oversized: %v", err)
		}
	}
	data, _, err := AsJSON.Encode(&mihv1.GetParametersRequest{Link: "x"})
	if err != nil || !strings.Contains(string(data), `"link"`) {
		t.Errorf("%s, %v", data, err)
	}
}

// header reads headers as a line each, for fuzzing.
func header(text string) Header {
	h := Header{}
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		h[k] = append(h[k], v)
	}
	return h
}

func FuzzHeaders(f *testing.F) {
	f.Add("Mihf-Previous: 1\nMihf-Held: 5\nMihf-Part: 1/2\nMihf-Boot: 0000b007\nMihf-At: 77")
	f.Add("Mihf-Previous: 1\nMihf-Previous: 2")
	f.Add("Content-Type: application/json\nAccept: */*\nMihf-Session: a-b_c\nMihf-Deliver: _INBOX.a.b\nMihf-Method: Status")
	f.Add("Mihf-Error: LIMIT")
	f.Fuzz(func(t *testing.T, text string) {
		h := header(text)
		if e, err := ParseEnvelope(h); err == nil {
			if again, err := ParseEnvelope(e.Header()); err != nil || again != e {
				t.Errorf("%+v came back as %+v, %v", e, again, err)
			}
		} else if !errors.Is(err, mihf.ErrInvalid) {
			t.Error(err)
		}
		if r, err := ParseRequest(h); err == nil && len(r.Session) > maxSession {
			t.Errorf("session %q", r.Session)
		}
		_ = Refused(h, []byte(text))
	})
}

func FuzzSubject(f *testing.F) {
	for _, s := range []string{"mih.v1.node.event.wifi-00000001.link_up", "mih.v1.n%2E.hint._.freeze", "mih.v1.n.owner.7.F.freeze", "mih.v1.n.sync", "mih.v1..", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		s, err := ParseSubject(subject)
		if err != nil {
			if !errors.Is(err, mihf.ErrInvalid) {
				t.Error(err)
			}
			return
		}
		node := Token(string(s.Node))
		again := "mih.v1." + node + "." + s.Class
		switch s.Class {
		case ClassOwner:
			again += fmt.Sprintf(".%d.%s.%s", s.Owner, Token(s.Name), Token(s.Kind))
		case ClassService:
			again += "." + Token(s.Kind)
		case ClassEvent, ClassHint:
			again += "." + Token(s.Name) + "." + Token(s.Kind)
		}
		if again != subject {
			t.Errorf("%q is read as %q", subject, again)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"link":"wifi-00000001"}`), true)
	f.Add([]byte("\x0a\x03abc"), false)
	f.Fuzz(func(t *testing.T, data []byte, asJSON bool) {
		r := Request{JSON: asJSON}
		for _, m := range []proto.Message{&mihv1.FlowSpec{}, &mihv1.Ack{}, &mihv1.SubscribeRequest{}, &mihv1.ConfigureThresholdsRequest{}} {
			if err := r.Decode(data, m); err != nil && !errors.Is(err, mihf.ErrInvalid) && !errors.Is(err, mihf.ErrLimit) {
				t.Error(err)
			}
		}
	})
}

package natsproto

import (
	"fmt"
	"strconv"
	"strings"

	"mihf.dev/mihf"
)

// prefix begins every subject.
const prefix = "mih.v1."

// Classes of subject, the token after the node.
const (
	ClassEvent   = "event" // mih.v1.<node>.event.<link>.<kind>
	ClassHint    = "hint"  // mih.v1.<node>.hint.<flow>.<kind>
	ClassOwner   = "owner" // mih.v1.<node>.owner.<uid>.<flow>.<kind>: the hints of one owner's flows
	ClassService = "svc"   // mih.v1.<node>.svc.<operation>
	ClassSync    = "sync"  // mih.v1.<node>.sync
	Nodes        = prefix + "svc.nodes"
	InboxPrefix  = "_INBOX" // every subject that a client is answered on begins so
	emptyToken   = "_"      // what an empty name is
	underscore   = "%5F"    // and what that name is
	hexDigits    = "0123456789ABCDEF"
	maxSubject   = 1024 // octets of a subject that a client names
	maxInboxName = 64   // octets of a user's name in its inbox
)

// Operations of the service.
const (
	OpSnapshot   = "snapshot"
	OpRegister   = "register"
	OpHeartbeat  = "heartbeat"
	OpUnregister = "unregister"
	OpUpdate     = "update"
	OpAck        = "ack"
	OpCommand    = "command"
	OpInfo       = "info"
	OpAdmin      = "admin"
	OpResume     = "resume"
)

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// Token writes a name of arbitrary octets as one token of a subject: every octet outside
// [A-Za-z0-9_-] is %XX, and no octets at all are "_". [ParseToken] reverses it.
func Token(name string) string {
	switch name {
	case "":
		return emptyToken
	case emptyToken:
		return underscore
	}
	n := 0
	for i := range len(name) {
		if !plain(name[i]) {
			n++
		}
	}
	if n == 0 {
		return name
	}
	b := make([]byte, 0, len(name)+2*n)
	for i := range len(name) {
		if c := name[i]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(b)
}

// ParseToken returns the name that [Token] was given. A name has one spelling: another one
// is refused.
func ParseToken(token string) (string, error) {
	if token == emptyToken {
		return "", nil
	}
	b := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c == '%' && i+2 < len(token) {
			v, err := strconv.ParseUint(token[i+1:i+3], 16, 8)
			if err != nil {
				return "", fmt.Errorf("%w: token %.80q: bad escape at offset %d", mihf.ErrInvalid, token, i)
			}
			c, i = byte(v), i+2
		}
		b = append(b, c)
	}
	if name := string(b); Token(name) == token {
		return name, nil
	}
	return "", fmt.Errorf("%w: token %.80q is not how a name is written", mihf.ErrInvalid, token)
}

// Event returns the subject of a kind of event of a link, which may be "".
func Event(node mihf.NodeID, link mihf.LinkID, kind mihf.Kind) string {
	return prefix + Token(string(node)) + "." + ClassEvent + "." + Token(string(link)) + "." + Token(kind.String())
}

// Hint returns the subject of a kind of hint to a flow.
func Hint(node mihf.NodeID, flow mihf.FlowID, kind mihf.HintKind) string {
	return prefix + Token(string(node)) + "." + ClassHint + "." + Token(string(flow)) + "." + Token(kind.String())
}

// OwnerHint returns the subject of a kind of hint to a flow of an owner.
func OwnerHint(node mihf.NodeID, owner uint32, flow mihf.FlowID, kind mihf.HintKind) string {
	return prefix + Token(string(node)) + "." + ClassOwner + "." + strconv.FormatUint(uint64(owner), 10) + "." + Token(string(flow)) + "." + Token(kind.String())
}

// Events returns the pattern of all events of a node.
func Events(node mihf.NodeID) string { return prefix + Token(string(node)) + "." + ClassEvent + ".>" }

// LinkEvents returns the pattern of all events of a link.
func LinkEvents(node mihf.NodeID, link mihf.LinkID) string {
	return prefix + Token(string(node)) + "." + ClassEvent + "." + Token(string(link)) + ".*"
}

// Hints returns the pattern of all hints of a node.
func Hints(node mihf.NodeID) string { return prefix + Token(string(node)) + "." + ClassHint + ".>" }

// OwnerHints returns the pattern of the hints to the flows of an owner.
func OwnerHints(node mihf.NodeID, owner uint32) string {
	return prefix + Token(string(node)) + "." + ClassOwner + "." + strconv.FormatUint(uint64(owner), 10) + ".>"
}

// Service returns the subject of an operation.
func Service(node mihf.NodeID, op string) string {
	return prefix + Token(string(node)) + "." + ClassService + "." + op
}

// Services returns the pattern of all operations of a node.
func Services(node mihf.NodeID) string { return Service(node, "*") }

// Sync returns the subject on which a node says that it is there, and when what was heard
// may have a hole.
func Sync(node mihf.NodeID) string { return prefix + Token(string(node)) + "." + ClassSync }

// Subject is a subject taken apart.
type Subject struct {
	Node  mihf.NodeID
	Class string
	Owner uint32 // of ClassOwner
	Name  string // the link or flow; "" where there is none
	Kind  string // of the event or hint; of ClassService the operation
}

// ParseSubject takes a subject apart.
func ParseSubject(subject string) (s Subject, err error) {
	rest, ok := strings.CutPrefix(subject, prefix)
	if !ok || len(subject) > maxSubject {
		return s, fmt.Errorf("%w: subject %.80q does not begin with %s", mihf.ErrInvalid, subject, prefix)
	}
	tokens := strings.Split(rest, ".")
	if len(tokens) < 2 {
		return s, fmt.Errorf("%w: subject %.80q ends too early", mihf.ErrInvalid, subject)
	}
	node, err := ParseToken(tokens[0])
	if err != nil {
		return s, err
	}
	s.Node, s.Class = mihf.NodeID(node), tokens[1]
	want := map[string]int{ClassEvent: 4, ClassHint: 4, ClassOwner: 5, ClassService: 3, ClassSync: 2}[s.Class]
	if len(tokens) != want {
		return s, fmt.Errorf("%w: subject %.80q is of no form that is known", mihf.ErrInvalid, subject)
	}
	switch s.Class {
	case ClassOwner:
		owner, err := strconv.ParseUint(tokens[2], 10, 32)
		if err != nil || strconv.FormatUint(owner, 10) != tokens[2] {
			return s, fmt.Errorf("%w: subject %.80q: %.20q is no uid", mihf.ErrInvalid, subject, tokens[2])
		}
		s.Owner = uint32(owner)
		tokens = tokens[1:]
	case ClassSync:
		return s, nil
	case ClassService:
		s.Kind, err = ParseToken(tokens[2])
		return s, err
	}
	if s.Name, err = ParseToken(tokens[2]); err != nil {
		return s, err
	}
	s.Kind, err = ParseToken(tokens[3])
	return s, err
}

// UserInbox returns what the inboxes of a user begin with, where a server keeps the users'
// inboxes apart.
func UserInbox(user string) string { return InboxPrefix + "." + Token(user) }

// CheckReply refuses a subject to answer on that is neither an inbox nor what a server puts
// in its place.
func CheckReply(subject string) error {
	if strings.HasPrefix(subject, "_R_.") {
		return nil
	}
	return CheckInbox(subject, "")
}

// CheckInbox refuses a subject that a client wants to be told something on, unless it is an
// inbox and, where the user is named, one of that user's: the daemon may publish anywhere,
// and must not be talked into it.
func CheckInbox(subject, user string) error {
	want := InboxPrefix // and what a user's own prefix, or a dot, puts behind it
	if user != "" {
		want = UserInbox(user) + "."
	}
	switch {
	case len(subject) > maxSubject:
		return fmt.Errorf("%w: the subject to deliver to has %d octets, at most %d", mihf.ErrInvalid, len(subject), maxSubject)
	case !strings.HasPrefix(subject, want) || !strings.Contains(subject, "."):
		return fmt.Errorf("%w: %.80q is not one of the caller's inboxes, which begin with %s", mihf.ErrPermission, subject, want)
	}
	for t := range strings.SplitSeq(subject, ".") {
		if t == "" || strings.Trim(t, "*>") == "" || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%w: %.80q is no subject to deliver to", mihf.ErrInvalid, subject)
		}
	}
	return nil
}

// AllOwnerHints returns the pattern of the hints of all owners.
func AllOwnerHints(node mihf.NodeID) string {
	return prefix + Token(string(node)) + "." + ClassOwner + ".>"
}

// Stream returns the name of the JetStream stream that keeps a node's events.
func Stream(node mihf.NodeID) string { return "MIHF_" + Token(string(node)) }

// StreamRead returns the subject on which a node's stream is read. Nothing else of it can
// be done there.
func StreamRead(node mihf.NodeID) string { return "$JS.API.DIRECT.GET." + Stream(node) }

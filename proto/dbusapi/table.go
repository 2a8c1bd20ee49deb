package dbusapi

import (
	"encoding/xml"
	"strings"

	"github.com/godbus/dbus/v5/introspect"

	"mihf.dev/mihf"
)

// Standard interfaces.
const (
	Introspectable = "org.freedesktop.DBus.Introspectable"
	Peer           = "org.freedesktop.DBus.Peer"
	Properties     = "org.freedesktop.DBus.Properties"
	ObjectManager  = "org.freedesktop.DBus.ObjectManager"
)

const dict = "a{sv}"

func in(name, typ string) introspect.Arg {
	return introspect.Arg{Name: name, Type: typ, Direction: "in"}
}

func out(name, typ string) introspect.Arg {
	return introspect.Arg{Name: name, Type: typ, Direction: "out"}
}

func method(name string, args ...introspect.Arg) introspect.Method {
	return introspect.Method{Name: name, Args: args}
}

func sig(name string, args ...introspect.Arg) introspect.Signal {
	return introspect.Signal{Name: name, Args: args}
}

func arg(name, typ string) introspect.Arg { return introspect.Arg{Name: name, Type: typ} }

// Methods of [BrokerInterface]. Control tells the policy's part: what only the group may call.
var brokerMethods = []introspect.Method{
	method(MethodGetSnapshot, out("snapshot", dict)),
	method(MethodResume, in("request", dict), out("deliveries", "a"+dict), out("boot_id", "s"), out("reached", "t")),
	method(MethodGetParameters, in("link", "s"), out("status", dict)),
	method(MethodGetInformation, in("request", dict), out("information", dict)),
	method(MethodStatus, out("status", dict)),
	method(MethodExplain, in("prediction_id", "s"), out("explanation", dict)),
	method(MethodSubscribe, in("stream", "t"), in("request", dict)),
	method(MethodCloseStream, in("stream", "t")),
	method(MethodRegisterFlow, in("spec", dict), out("registration", dict)),
	method(MethodUnregisterFlow, in("flow", "s")),
	method(MethodUpdateFlow, in("update", dict)),
	method(MethodAcknowledge, in("ack", dict)),
	method(MethodConfigureThresholds, in("link", "s"), in("items", "a"+dict), out("confirm", dict)),
	method(MethodRecord, in("stream", "t")),
}

// Control holds the methods that change something or show what only administrators may
// see. The bus's policy lets the group mihf call them; the broker decides then.
var Control = map[string]bool{
	MethodRegisterFlow: true, MethodUnregisterFlow: true, MethodUpdateFlow: true, MethodAcknowledge: true,
	MethodConfigureThresholds: true, MethodRecord: true,
}

// eventArgs are those of the signal of an event.
func eventArgs() []introspect.Arg {
	return []introspect.Arg{arg("previous", "t"), arg("held_ns", "x"), arg("event", dict), arg("conflated", "u")}
}

// hintArgs are those of the signal of a hint.
func hintArgs() []introspect.Arg {
	return []introspect.Arg{arg("previous", "t"), arg("held_ns", "x"), arg("hint", dict)}
}

// OfNoLink are the kinds of event that are not about one link: their signals come from
// [Root].
var OfNoLink = mihf.Kinds(mihf.DefaultRouteChanged, mihf.SensorConditionChanged, mihf.ResumedFromSuspend, mihf.Resync, mihf.ShareReport)

// EventSignal returns the name of the signal of a kind of event, without its interface.
func EventSignal(k mihf.Kind) string { return camel(k.String()) }

// HintSignal returns the name of the signal of a kind of hint.
func HintSignal(k mihf.HintKind) string { return camel(k.String()) }

// camel turns link_up into LinkUp.
func camel(s string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(s, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func eventSignals(ofNoLink bool) (list []introspect.Signal) {
	for k := mihf.Kind(1); int(k) < mihf.NumKinds; k++ {
		if OfNoLink.Has(k) == ofNoLink {
			list = append(list, sig(EventSignal(k), eventArgs()...))
		}
	}
	return list
}

func hintSignals() (list []introspect.Signal) {
	for k := mihf.HintFreeze; mihf.AllHints.Has(k); k++ {
		list = append(list, sig(HintSignal(k), hintArgs()...))
	}
	return list
}

// Change is how a property's change is told.
const changeAnnotation = "org.freedesktop.DBus.Property.EmitsChangedSignal"

func property(name, typ, emits string) introspect.Property {
	return introspect.Property{Name: name, Type: typ, Access: "read", Annotations: []introspect.Annotation{{Name: changeAnnotation, Value: emits}}}
}

func changing(list ...string) (out []introspect.Property) {
	for i := 0; i < len(list); i += 2 {
		out = append(out, property(list[i], list[i+1], "true"))
	}
	return out
}

// broker, link and flow are the interfaces of our own.
var (
	broker = introspect.Interface{
		Name: BrokerInterface, Methods: brokerMethods,
		Signals: append(eventSignals(true),
			sig("Gap", arg("gap", dict)),
			sig("Delivery", arg("stream", "t"), arg("delivery", dict)),
			sig("StreamEnded", arg("stream", "t"), arg("error", "s"), arg("text", "s")),
			sig("Detached", arg("error", "s"), arg("text", "s"))),
		Properties: []introspect.Property{property("Node", "s", "const"), property("BootId", "s", "const"), property("Version", "s", "const")},
	}
	link = introspect.Interface{
		Name: LinkInterface, Signals: eventSignals(false),
		Properties: append([]introspect.Property{property("Id", "s", "const"), property("Type", "s", "const")},
			changing("Name", "ay", "NameText", "s", "Up", "b", "UsableIPv4", "b", "UsableIPv6", "b", "HoldDown", "b",
				"PoA", "s", "SSID", "ay", "SSIDText", "s", "Association", "s", "Technology", "s", "MTUBytes", "u", "Prediction", "s")...),
	}
	flow = introspect.Interface{
		Name: FlowInterface, Signals: hintSignals(),
		Properties: append([]introspect.Property{property("Id", "s", "const")},
			changing("Link", "s", "Frozen", "b", "Epoch", "t", "AcknowledgedEpoch", "t", "LastAck", "s", "LeadNs", "x")...),
	}
)

// Interfaces of D-Bus itself.
var (
	propertiesInterface = introspect.Interface{
		Name: Properties,
		Methods: []introspect.Method{
			method("Get", in("interface", "s"), in("property", "s"), out("value", "v")),
			method("GetAll", in("interface", "s"), out("properties", dict)),
			method("Set", in("interface", "s"), in("property", "s"), in("value", "v")),
		},
		Signals: []introspect.Signal{sig("PropertiesChanged", arg("interface", "s"), arg("changed", dict), arg("invalidated", "as"))},
	}
	objectManager = introspect.Interface{
		Name:    ObjectManager,
		Methods: []introspect.Method{method("GetManagedObjects", out("objects", "a{oa{sa{sv}}}"))},
		Signals: []introspect.Signal{
			sig("InterfacesAdded", arg("object", "o"), arg("interfaces", "a{sa{sv}}")),
			sig("InterfacesRemoved", arg("object", "o"), arg("interfaces", "as")),
		},
	}
)

// Kind is a kind of object.
type Kind uint8

// Kinds of object.
const (
	KindNode   Kind = iota // of the path only
	KindBroker             // at [Root]
	KindLink
	KindFlow
)

// Interfaces returns the interfaces of a kind of object.
func (k Kind) Interfaces() []introspect.Interface {
	standard := []introspect.Interface{introspect.IntrospectData, introspect.PeerData}
	switch k {
	case KindBroker:
		return append(standard, propertiesInterface, objectManager, broker)
	case KindLink:
		return append(standard, propertiesInterface, link)
	case KindFlow:
		return append(standard, propertiesInterface, flow)
	default:
		return standard
	}
}

// Own returns the name of the kind's own interface.
func (k Kind) Own() string {
	switch k {
	case KindBroker:
		return BrokerInterface
	case KindLink:
		return LinkInterface
	case KindFlow:
		return FlowInterface
	default:
		return ""
	}
}

// Find returns a method of a kind of object. Where no interface is named, any will do that
// has it. The signature is that of the arguments that go in.
func (k Kind) Find(iface, member string) (where, signature string, found, interfaceKnown bool) {
	for _, i := range k.Interfaces() {
		if iface != "" && i.Name != iface {
			continue
		}
		interfaceKnown = true
		for _, m := range i.Methods {
			if m.Name == member {
				return i.Name, inputs(&m), true, true
			}
		}
	}
	return "", "", false, interfaceKnown
}

func inputs(m *introspect.Method) (s string) {
	for _, a := range m.Args {
		if a.Direction == "in" {
			s += a.Type
		}
	}
	return s
}

// XML returns the introspection of a kind of object with the children given.
func (k Kind) XML(children []string) (string, error) {
	n := introspect.Node{Interfaces: k.Interfaces()}
	for _, c := range children {
		n.Children = append(n.Children, introspect.Node{Name: c})
	}
	b, err := xml.MarshalIndent(n, "", "  ")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(introspect.IntrospectDeclarationString) + "\n" + string(b) + "\n", nil
}

// InterfaceNames returns the names of the interfaces of a kind of object.
func (k Kind) InterfaceNames() (names []string) {
	for _, i := range k.Interfaces() {
		names = append(names, i.Name)
	}
	return names
}

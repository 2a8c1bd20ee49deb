package service

import (
	"mihf.dev/mihf"
	"mihf.dev/proto/conv"
	mihv1 "mihf.dev/proto/mih/v1"
)

// Register takes a flow for an attachment. Hints of the flow may come through the attachment
// before this returns.
func Register(at mihf.Attachment, req *mihv1.FlowSpec) (*mihv1.Registration, error) {
	spec, err := conv.DecodeFlowSpec(req)
	if err != nil {
		return nil, err
	}
	reg, err := at.Register(spec)
	if err != nil {
		return nil, err
	}
	return conv.EncodeRegistration(&reg), nil
}

// Update takes a flow's newer state.
func Update(at mihf.Attachment, req *mihv1.FlowUpdate) error {
	u, err := conv.DecodeFlowUpdate(req)
	if err != nil {
		return err
	}
	return at.Update(u)
}

// Unregister ends a flow's registration.
func Unregister(at mihf.Attachment, req *mihv1.Unregister) error {
	id, err := conv.DecodeUnregister(req)
	if err != nil {
		return err
	}
	return at.Unregister(id)
}

// Acknowledge notes what a transport did with a hint.
func Acknowledge(at mihf.Attachment, req *mihv1.Ack) error {
	k, err := conv.DecodeAck(req)
	if err != nil {
		return err
	}
	return at.Acknowledge(k)
}

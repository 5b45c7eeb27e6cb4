package grpcmw

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Messages makes and copies messages that are not of proto, for WithMessages. Each attempt
// of a hedged call gets messages of its own. Its methods are called by many goroutines at
// once.
type Messages interface {
	// New returns an empty message of the type of message, which is a request or a reply
	// and must not be changed. It returns nil if it does not know that type.
	New(message any) any
	// Copy makes dst equal to src and leaves nothing that both refer to. Dst is one that
	// New has made, or a caller's reply, which may hold anything.
	Copy(dst, src any)
}

// messages are those of the user, if there are any, and those of proto.
type messages struct{ user Messages }

// fresh returns an empty message of the type of a reply, or nil if that type is not known,
// and whether it is the user's to copy.
func (m messages) fresh(reply any) (fresh any, users bool) {
	if m.user != nil && reply != nil {
		if fresh := m.user.New(reply); fresh != nil {
			return fresh, true
		}
	}
	switch reply := reply.(type) {
	case proto.Message:
		if r := reply.ProtoReflect(); r.IsValid() {
			return r.New().Interface(), false
		}
	case protoadapt.MessageV1:
		if r := protoadapt.MessageV2Of(reply).ProtoReflect(); r.IsValid() {
			return protoadapt.MessageV1Of(r.New().Interface()), false
		}
	}
	return nil, false
}

// clone returns a copy of a request, or nil if its type is not known.
func (m messages) clone(request any) any {
	if m.user != nil && request != nil {
		if fresh := m.user.New(request); fresh != nil {
			m.user.Copy(fresh, request)
			return fresh
		}
	}
	switch request := request.(type) {
	case proto.Message:
		return proto.Clone(request)
	case protoadapt.MessageV1:
		return protoadapt.MessageV1Of(proto.Clone(protoadapt.MessageV2Of(request)))
	}
	return nil
}

// cloneable reports whether clone knows the type of a request.
func (m messages) cloneable(request any) bool {
	switch request.(type) {
	case nil:
		return false
	case proto.Message, protoadapt.MessageV1:
		return true
	}
	return m.user != nil && m.user.New(request) != nil
}

// deliver makes the caller's reply what src is, which fresh has made for it and nobody
// uses any more.
func (m messages) deliver(reply, src any, users bool) {
	if users {
		m.user.Copy(reply, src)
		return
	}
	switch reply := reply.(type) {
	case proto.Message:
		move(reply, src.(proto.Message))
	case protoadapt.MessageV1:
		move(protoadapt.MessageV2Of(reply), protoadapt.MessageV2Of(src.(protoadapt.MessageV1)))
	}
}

// move gives dst the fields of src, without a copy of what they hold.
func move(dst, src proto.Message) {
	proto.Reset(dst)
	d, s := dst.ProtoReflect(), src.ProtoReflect()
	s.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		d.Set(field, v)
		return true
	})
	d.SetUnknown(s.GetUnknown())
}

package grpcmw

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Messages makes and copies messages that this package does not know, for WithMessages:
// those of codecs other than proto, and those of proto's old API. Each attempt of a hedged
// call gets messages of its own. Its methods are called by many goroutines at once.
type Messages interface {
	// New returns an empty message of the type of message, which is a request or a reply
	// and must not be changed. It returns nil if it does not know that type.
	New(message any) any
	// Copy makes dst equal to src and leaves nothing that both refer to. Dst is one that
	// New has made, or a caller's reply, which may hold anything.
	Copy(dst, src any)
}

// messages are those of the user, if there are any, and those of proto in a call whose
// codec is that of proto. Another codec may read and write what is no field of a message,
// even of one that looks like proto's.
type messages struct {
	user  Messages
	proto bool
}

// messagesOf returns the messages of a call with these options.
func (c *Client) messagesOf(options []grpc.CallOption) messages {
	return messages{user: c.options.messages, proto: speaksProto(options)}
}

// known returns m as a message of proto, if it is one and not nil. What merely embeds one
// is not: its copy would be of the type that is embedded.
func (m messages) known(message any) (proto.Message, bool) {
	p, ok := message.(proto.Message)
	if !ok || !m.proto {
		return nil, false
	}
	r := p.ProtoReflect()
	return p, r.IsValid() && r.Interface() == p
}

// fresh returns an empty message of the type of a reply, or nil if that type is not known,
// and whether it is the user's to copy.
func (m messages) fresh(reply any) (fresh any, users bool) {
	if m.user != nil && reply != nil {
		if fresh := m.user.New(reply); fresh != nil {
			return fresh, true
		}
	}
	if p, ok := m.known(reply); ok {
		return p.ProtoReflect().New().Interface(), false
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
	if p, ok := m.known(request); ok {
		return proto.Clone(p)
	}
	return nil
}

// cloneable reports whether clone knows the type of a request.
func (m messages) cloneable(request any) bool {
	if _, ok := m.known(request); ok {
		return true
	}
	return m.user != nil && request != nil && m.user.New(request) != nil
}

// deliver makes the caller's reply what src is, which fresh has made for it and nobody
// uses any more.
func (m messages) deliver(reply, src any, users bool) {
	if users {
		m.user.Copy(reply, src)
		return
	}
	move(reply.(proto.Message), src.(proto.Message))
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

package grpcmw

import (
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// flat returns an option that may be a pointer to one, which gRPC takes too, by value.
func flat(o grpc.CallOption) grpc.CallOption {
	switch o := o.(type) {
	case *grpc.HeaderCallOption:
		return *o
	case *grpc.TrailerCallOption:
		return *o
	case *grpc.PeerCallOption:
		return *o
	case *grpc.OnFinishCallOption:
		return *o
	case *grpc.ContentSubtypeCallOption:
		return *o
	case *grpc.ForceCodecCallOption:
		return *o
	case *grpc.ForceCodecV2CallOption:
		return *o
	case *grpc.CustomCodecCallOption:
		return *o
	}
	return o
}

// speaksProto reports whether a call with these options uses the codec that is registered
// for proto. One that is forced may do anything, whatever its name.
func speaksProto(options []grpc.CallOption) bool {
	subtype := ""
	for _, o := range options {
		switch o := flat(o).(type) {
		case grpc.ForceCodecCallOption, grpc.ForceCodecV2CallOption, grpc.CustomCodecCallOption:
			return false
		case grpc.ContentSubtypeCallOption:
			subtype = o.ContentSubtype
		}
	}
	return subtype == "" || subtype == "proto"
}

// cells are where one attempt writes what its call options ask for. The caller's own
// variables are written once, by publish, from those of the attempt that decided the
// call: gRPC writes through the pointers in the options when an attempt ends, and a loser
// ends when the caller has long gone on.
type cells struct {
	header  metadata.MD // nil if the attempt ended without
	trailer metadata.MD
	peer    peer.Peer
}

// options returns a copy of the caller's options that write to the cells. The caller's
// OnFinish is left out, since an attempt is not the call.
func (c *cells) options(callers []grpc.CallOption) []grpc.CallOption {
	list := make([]grpc.CallOption, 0, len(callers)+4) // room for OnFinish
	for _, o := range callers {
		switch flat(o).(type) {
		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption, grpc.OnFinishCallOption:
			continue // All but OnFinish are always asked for, below.
		}
		list = append(list, o)
	}
	return append(list, grpc.Header(&c.header), grpc.Trailer(&c.trailer), grpc.Peer(&c.peer))
}

// besides returns a copy of the caller's options that write the trailer to the cells too.
func (c *cells) besides(callers []grpc.CallOption) []grpc.CallOption {
	list := make([]grpc.CallOption, 0, len(callers)+2) // room for OnFinish
	list = append(list, callers...)
	return append(list, grpc.Trailer(&c.trailer))
}

// withoutFinish returns the options, which it changes, without OnFinish.
func withoutFinish(options []grpc.CallOption) []grpc.CallOption {
	return slices.DeleteFunc(options, func(o grpc.CallOption) bool {
		_, ok := flat(o).(grpc.OnFinishCallOption)
		return ok
	})
}

// publish gives the caller what its options ask for. Like gRPC it leaves the caller's
// variables alone if no stream was ever made.
func (c *cells) publish(callers []grpc.CallOption) {
	if c == nil || c.trailer == nil { // gRPC sets a trailer that is empty, but not nil
		return
	}
	for _, o := range callers {
		switch o := flat(o).(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = copied(c.header)
		case grpc.TrailerCallOption:
			*o.TrailerAddr = copied(c.trailer)
		case grpc.PeerCallOption:
			if c.peer.Addr != nil {
				*o.PeerAddr = c.peer
			}
		}
	}
}

// copied returns a copy of md, and nil of nil: that is what gRPC gives a caller if there
// were no headers.
func copied(md metadata.MD) metadata.MD {
	if md == nil {
		return nil
	}
	return md.Copy()
}

// finish tells the caller's OnFinish how the call has ended.
func finish(callers []grpc.CallOption, err error) {
	for _, o := range callers {
		if o, ok := flat(o).(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}

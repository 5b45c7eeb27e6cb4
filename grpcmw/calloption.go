package grpcmw

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// cells are where one attempt writes what its call options ask for. The caller's own
// variables are written once, by publish, from those of the attempt that decided the
// call: gRPC writes through the pointers in the options when an attempt ends, and a loser
// ends when the caller has long gone on.
type cells struct {
	header  metadata.MD // nil if the attempt ended without
	trailer metadata.MD
	peer    peer.Peer
}

// options returns a copy of the caller's options that write to the cells, with more of our
// own. The caller's OnFinish is left out, since an attempt is not the call.
func (c *cells) options(callers []grpc.CallOption, own ...grpc.CallOption) []grpc.CallOption {
	list := make([]grpc.CallOption, 0, len(callers)+2+len(own))
	for _, o := range callers {
		switch o.(type) {
		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.OnFinishCallOption:
			continue // Headers and trailers are always asked for, below.
		case grpc.PeerCallOption:
			o = grpc.Peer(&c.peer)
		}
		list = append(list, o)
	}
	list = append(list, grpc.Header(&c.header), grpc.Trailer(&c.trailer))
	return append(list, own...)
}

// besides returns a copy of the caller's options that write the trailer to the cells too.
func (c *cells) besides(callers []grpc.CallOption, own ...grpc.CallOption) []grpc.CallOption {
	list := make([]grpc.CallOption, 0, len(callers)+1+len(own))
	list = append(list, callers...)
	list = append(list, grpc.Trailer(&c.trailer))
	return append(list, own...)
}

// publish gives the caller what its options ask for. Like gRPC it leaves the caller's
// variables alone if no stream was ever made.
func (c *cells) publish(callers []grpc.CallOption) {
	if c == nil || c.trailer == nil { // gRPC sets a trailer that is empty, but not nil
		return
	}
	for _, o := range callers {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = c.header.Copy()
		case grpc.TrailerCallOption:
			*o.TrailerAddr = c.trailer.Copy()
		case grpc.PeerCallOption:
			if c.peer.Addr != nil {
				*o.PeerAddr = c.peer
			}
		}
	}
}

// finish tells the caller's OnFinish how the call has ended.
func finish(callers []grpc.CallOption, err error) {
	for _, o := range callers {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}

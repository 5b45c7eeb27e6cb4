package grpcmw

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// openStream is the stream of one attempt, as the interceptors inside have returned it. They
// may open several below it, one after the other, so the end of one RPC, which gRPC tells by
// OnFinish, need not be its own. It ends, once,
//
//   - by what its methods return: an error or io.EOF of RecvMsg, or the only reply; an error of
//     SendMsg or Header. Who opened anything below it has given that up, and the context is
//     cancelled;
//   - by OnFinish, if nothing can follow: the context has ended, the channel is closed, or
//     Header has told that there are no headers;
//   - by its context, if nothing was opened below it that would tell. That is known by the
//     StatsHandler.
//
// Whoever finds the end first sees to it, and the others wait for that. gRPC writes what the
// call options ask for before its stream's method returns the end and before OnFinish, under
// one lock, so what end reads was written before.
type openStream struct {
	// Immutable once opened.
	grpc.ClientStream // nil before
	cc                *grpc.ClientConn
	ctx               *attemptContext
	cancel            context.CancelFunc
	watched           bool // the StatsHandler counts what begins
	replies           bool // the server streams
	// end sees to the end, and returns what is to be called when nobody waits for it any
	// more, or nil.
	end func(err error) (then func())

	once sync.Once // end

	cells cells // written by gRPC; see above

	mu sync.Mutex // a leaf
	// Guarded by mu.

	told int         // how often OnFinish was
	err  error       // what it was told last
	bare bool        // Header has told that there are none
	stop func() bool // forgets about the context; nil before that is watched
}

// opened takes the stream that was opened.
func (s *openStream) opened(stream grpc.ClientStream) {
	s.ClientStream = stream
	if !s.watched {
		return // It could not be known whether an RPC is still to tell of its end.
	}
	stop := context.AfterFunc(s.ctx, s.contextEnded)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = stop
}

// SendMsg sends a message.
func (s *openStream) SendMsg(m any) error {
	err := s.ClientStream.SendMsg(m)
	if err != nil && err != io.EOF { //nolint:errorlint // the bare value, by contract
		s.over(err)
	}
	return err
}

// RecvMsg receives a message.
func (s *openStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil || !s.replies {
		s.over(err)
	}
	return err
}

// Header waits for the headers.
func (s *openStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	switch {
	case err != nil:
		s.over(err)
	case md == nil:
		s.mu.Lock()
		s.bare = true
		ends, told := s.told > 0 && s.quietLocked(), s.err
		s.mu.Unlock()
		if ends {
			s.settle(told) // RecvMsg cancels the context: an interceptor may go on there.
		}
	}
	return md, err
}

// over ends the stream by what one of its methods has returned.
func (s *openStream) over(err error) {
	if err == io.EOF { //nolint:errorlint // the bare value, by contract
		err = nil
	}
	s.settle(err)
	s.cancel()
}

// finished is told by gRPC that an RPC has ended, by some of them twice.
func (s *openStream) finished(err error) {
	s.mu.Lock()
	s.told++
	s.err = err
	bare := s.bare
	quiet := s.quietLocked()
	s.mu.Unlock()
	switch {
	case !quiet:
	case s.lost():
		s.settle(err)
		s.cancel()
	case bare:
		s.settle(err)
	}
}

// contextEnded ends a stream that no RPC will tell the end of.
func (s *openStream) contextEnded() {
	s.mu.Lock()
	quiet := s.quietLocked()
	s.mu.Unlock()
	if quiet {
		s.over(status.FromContextError(s.ctx.Err()).Err())
	}
}

// quietLocked reports whether no RPC is known to be under way. s.mu must be held.
func (s *openStream) quietLocked() bool {
	return !s.watched || int(s.ctx.begun.Load()) <= s.told
}

// lost reports whether nothing can be sent any more.
func (s *openStream) lost() bool { return s.ctx.Err() != nil || closing(s.cc) }

// settle sees to the end, or waits until that has been done.
func (s *openStream) settle(err error) {
	var then func()
	s.once.Do(func() {
		s.mu.Lock()
		stop := s.stop
		s.mu.Unlock()
		if stop != nil {
			stop()
		}
		then = s.end(err)
	})
	if then != nil {
		then()
	}
}

// closing reports whether a channel is closed. Interceptors may be called without one.
func closing(cc *grpc.ClientConn) bool {
	return cc != nil && cc.GetState() == connectivity.Shutdown
}

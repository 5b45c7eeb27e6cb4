package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// plain is a message of a codec that is not proto, though it has the methods of proto's old
// API, as many that were written by hand do.
type plain struct{ Text []byte }

func (m *plain) Reset()         { *m = plain{} }
func (m *plain) String() string { return string(m.Text) }
func (*plain) ProtoMessage()    {}

// plainCodec writes a plain as the backend reads it, which speaks proto.
type plainCodec struct{}

func (plainCodec) Name() string { return "proto" }

func (plainCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(*plain)
	if !ok {
		return nil, errors.New("not a *plain")
	}
	if len(m.Text) > 127 {
		return nil, errors.New("too long")
	}
	return append([]byte{0x0a, byte(len(m.Text))}, m.Text...), nil // field 1 of a BytesValue
}

func (plainCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(*plain)
	if !ok || len(data) < 2 {
		return errors.New("not a *plain")
	}
	m.Text = append(m.Text[:0], data[2:]...)
	return nil
}

// noted is a message of proto with more to it, which its codec knows of.
type noted struct {
	*wrapperspb.BytesValue
	Note string
}

// notedCodec leaves a note of what it reads.
type notedCodec struct{}

func (notedCodec) Name() string { return "noted" }

func (notedCodec) Marshal(v any) ([]byte, error) { return proto.Marshal(v.(proto.Message)) }

func (notedCodec) Unmarshal(data []byte, v any) error {
	if n, ok := v.(*noted); ok { // the backend's are not
		n.Note = "read"
	}
	return proto.Unmarshal(data, v.(proto.Message))
}

// L13: what looks like a message of proto may be more, which only its codec knows. So a call
// with another codec than proto's is sent once, with the caller's own messages.
func TestMessagesThatLookLikeProtoAreTheirCodecs(t *testing.T) {
	encoding.RegisterCodec(notedCodec{})
	subtype := grpc.ContentSubtypeCallOption{ContentSubtype: "noted"}
	for name, option := range map[string]grpc.CallOption{
		"by value": subtype, "by pointer": &subtype, "forced": grpc.ForceCodec(notedCodec{}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, inTurn(script{after: 300 * ms}, script{}), config(t, threeHedges))
				defer s.close()
				reply := &noted{BytesValue: wrapperspb.Bytes(nil)}
				err := s.cc.Invoke(t.Context(), get, &noted{BytesValue: wrapperspb.Bytes([]byte("ask"))}, reply, option)
				if err != nil || reply.Note != "read" || string(reply.GetValue()) != "\x00ask" {
					t.Errorf("the reply is %q, noted %q; %v", reply.GetValue(), reply.Note, err)
				}
				if n := s.client.Stats().Unhedgeable; n != 1 {
					t.Errorf("%d calls were unhedgeable; want 1", n)
				}
			})
		})
	}
}

// L13: what embeds a message of proto is not copied as if it were that message: interceptors
// inside see what the caller has given.
func TestMessageThatEmbedsOneOfProtoStaysWhatItIs(t *testing.T) {
	c, err := grpcmw.NewClient(grpcmw.Hedgeable(get))
	if err != nil {
		t.Fatal(err)
	}
	request, reply := &noted{BytesValue: wrapperspb.Bytes(nil)}, &noted{BytesValue: wrapperspb.Bytes(nil)}
	err = c.UnaryInterceptor()(t.Context(), get, request, reply, nil, func(_ context.Context, _ string, q, r any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		if q != request || r != reply {
			t.Errorf("the messages have become %T and %T", q, r)
		}
		return nil
	})
	if n := c.Stats().Unhedgeable; err != nil || n != 1 {
		t.Errorf("%d calls were unhedgeable; want 1; %v", n, err)
	}
}

// plainMessages makes them known.
type plainMessages struct{}

func (plainMessages) New(message any) any {
	if _, ok := message.(*plain); ok {
		return new(plain)
	}
	return nil
}

func (plainMessages) Copy(dst, src any) {
	dst.(*plain).Text = append([]byte(nil), src.(*plain).Text...)
}

// K17: messages of other codecs are hedged if it is known how to make and copy them, and
// sent once, counted, if not. Messages of proto need nothing beside them, but their codec.
func TestMessagesOfOtherCodecs(t *testing.T) {
	for _, c := range []struct {
		name     string
		options  []any
		reply    any
		call     []grpc.CallOption
		attempts int
	}{
		{name: "known", options: []any{grpcmw.WithMessages(plainMessages{})}, reply: new(plain), attempts: 2},
		{name: "unknown", reply: new(plain), attempts: 1},
		{name: "proto beside known ones", options: []any{grpcmw.WithMessages(plainMessages{})}, reply: new(wrapperspb.BytesValue), attempts: 2},
		{name: "proto by another codec", reply: new(wrapperspb.BytesValue), call: []grpc.CallOption{grpc.ForceCodec(notedCodec{})}, attempts: 1},
		{name: "no reply", reply: nil, attempts: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, inTurn(script{after: 300 * ms, deaf: true}, script{after: 50 * ms}), append(c.options, config(t, threeHedges))...)
				defer s.close()
				var err error
				if reply, ok := c.reply.(*plain); ok {
					err = s.cc.Invoke(t.Context(), get, &plain{Text: []byte("ask")}, reply, grpc.ForceCodec(plainCodec{}))
					if want := string([]byte{byte(c.attempts - 1)}) + "ask"; string(reply.Text) != want {
						t.Errorf("the reply is %q; want %q", reply.Text, want)
					}
				} else {
					err = s.cc.Invoke(t.Context(), get, wrapperspb.Bytes(nil), c.reply, c.call...)
				}
				if err != nil && c.name != "no reply" { // which gRPC cannot decode into
					t.Error(err)
				}
				time.Sleep(time.Second)
				if n := len(s.backend.seen()); n != c.attempts {
					t.Errorf("%d attempts were sent; want %d", n, c.attempts)
				}
				if n, want := s.client.Stats().Unhedgeable, uint64(2-c.attempts); n != want {
					t.Errorf("%d calls were unhedgeable; want %d", n, want)
				}
			})
		})
	}
}

// badCopy panics when it copies into what is the caller's.
type badCopy struct{ plainMessages }

func (badCopy) Copy(dst, src any) {
	if string(dst.(*plain).Text) == "mine" {
		panic("bad copy")
	}
	plainMessages{}.Copy(dst, src)
}

// A panic while the caller gets its reply is the caller's, and OnFinish is told all the same.
func TestPanicOfACopyIsToldToOnFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{}), config(t, threeHedges), grpcmw.WithMessages(badCopy{}))
		defer s.close()
		var o outs
		defer func() {
			if v := recover(); v != "bad copy" || len(o.finished) != 1 || status.Code(o.finished[0]) != codes.Internal {
				t.Errorf("recovered %v; OnFinish was told %v", v, o.finished)
			}
		}()
		err := s.cc.Invoke(t.Context(), get, &plain{Text: []byte("ask")}, &plain{Text: []byte("mine")}, append(o.options(), grpc.ForceCodec(plainCodec{}))...)
		t.Errorf("the call returned %v", err)
	})
}

// A request that cannot be copied is the caller's again when SendMsg has returned.
func TestUnknownRequestGoesOutWithinSendMsg(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{messages: 1}), config(t, fourRetries))
		defer s.close()
		stream, err := s.cc.NewStream(t.Context(), descs[list], list, grpc.ForceCodec(plainCodec{}))
		if err != nil {
			t.Fatal(err)
		}
		request, reply := &plain{Text: []byte("ask")}, new(plain)
		if err := stream.SendMsg(request); err != nil {
			t.Error(err)
		}
		copy(request.Text, "XXX")
		s.mustHold(1)
		if err := errors.Join(stream.CloseSend(), stream.RecvMsg(reply)); err != nil || string(reply.Text) != "\x00ask" {
			t.Errorf("received %q, %v", reply.Text, err)
		}
		if md, err := stream.Header(); err != nil || md["attempt"] == nil || stream.Context() == nil {
			t.Errorf("the header is %v, %v", md, err)
		}
		if err := stream.RecvMsg(reply); !errors.Is(err, io.EOF) || stream.Trailer()["attempt"] == nil {
			t.Errorf("the end is %v, the trailer %v", err, stream.Trailer())
		}
		s.mustHold(0)
	})
}

// A stream whose request is not known is not sent again either.
func TestStreamWithAnUnknownRequestIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{code: codes.Unavailable}), config(t, fourRetries))
		defer s.close()
		stream, err := s.cc.NewStream(t.Context(), descs[list], list, grpc.ForceCodec(plainCodec{}))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stream.SendMsg(&plain{Text: []byte("ask")}), stream.CloseSend()); err != nil {
			t.Error(err)
		}
		if err := stream.RecvMsg(new(plain)); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
		if n, u := len(s.backend.seen()), s.client.Stats().Unhedgeable; n != 1 || u != 1 {
			t.Errorf("%d attempts were sent, and %d calls were unhedgeable", n, u)
		}
	})
}

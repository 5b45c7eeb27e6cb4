package sizing

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// GRPC calls a unary method such as pkg.Service/Method over the connection, evenly spaced, with
// a message that is already encoded. Every status but OK is a failure.
func GRPC(conn *grpc.ClientConn, method string, message []byte, timeout time.Duration) Attack {
	return func(ctx context.Context, rate float64, length time.Duration) ([]Sample, error) {
		var (
			mu      sync.Mutex // a leaf
			samples []Sample   // guarded by mu
			calls   sync.WaitGroup
		)
		places := make(chan struct{}, maxOutstanding)
		began := time.Now()
		timer := time.NewTimer(0)
		defer timer.Stop()
		for n := 0; ; n++ {
			due := time.Duration(float64(n) / rate * float64(time.Second))
			if due >= length {
				break
			}
			timer.Reset(time.Until(began.Add(due)))
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				break
			}
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				break
			}
			if time.Since(began) >= length {
				break // It fell behind: what is left would come too late.
			}
			calls.Go(func() {
				defer func() { <-places }()
				callCtx, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				start := time.Since(began)
				err := conn.Invoke(callCtx, "/"+method, message, &raw{}, grpc.ForceCodecV2(rawCodec{}))
				s := Sample{Start: start, Latency: max(time.Since(began)-start, 1)}
				if err != nil {
					if ctx.Err() != nil {
						return // It may have failed by that.
					}
					s.Failed, s.Cause = true, grpcCause(err)
				}
				mu.Lock()
				defer mu.Unlock()
				samples = append(samples, s)
			})
		}
		calls.Wait()
		return samples, ctx.Err()
	}
}

// raw is a message that nobody decodes.
type raw struct{}

// rawCodec sends bytes as they are, and forgets what it receives.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.([]byte)
	if !ok {
		return nil, errors.New("sizing: internal error: a message that is not encoded")
	}
	return mem.BufferSlice{mem.SliceBuffer(message)}, nil
}

func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }

// Name is that of messages of protobuf, as which they are declared.
func (rawCodec) Name() string { return "proto" }

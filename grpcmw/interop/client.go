package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// step is what their server does with one attempt.
type step struct {
	After    int        `json:"after,omitempty"` // milliseconds
	Code     codes.Code `json:"code,omitempty"`
	Pushback string     `json:"pushback,omitempty"`
}

// record is what their server has seen of one attempt, written at its end.
type record struct {
	Call      string
	Previous  []string
	At        int64 // milliseconds
	Cancelled bool
}

const (
	hedged = `{"methodConfig": [{"name": [{}], "hedgingPolicy": {
		"maxAttempts": 3, "hedgingDelay": "0.1s", "nonFatalStatusCodes": ["UNAVAILABLE"]}}]}`
	retried = `{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1,
		"retryableStatusCodes": ["UNAVAILABLE"]}}]}`
)

// clientCases are calls of our client. gaps are the least times between attempts.
var clientCases = []struct {
	name      string
	policy    string
	script    []step // attempts that come after are given the last one
	code      codes.Code
	attempts  int
	cancelled int
	gaps      []int64 // milliseconds
}{
	{name: "hedges, the third wins", policy: hedged, script: []step{{After: 30_000}, {After: 30_000}, {}}, attempts: 3, cancelled: 2, gaps: []int64{50, 50}},
	{name: "a failure brings the next hedge forward", policy: hedged, script: []step{{After: 30_000}, {Code: codes.Unavailable}, {}}, attempts: 3, cancelled: 1, gaps: []int64{50, 0}},
	{name: "a pushback puts the next hedge off", policy: hedged, script: []step{{Code: codes.Unavailable, Pushback: "400"}, {}}, attempts: 2, gaps: []int64{395}},
	{name: "a pushback stops hedges", policy: hedged, script: []step{{Code: codes.Unavailable, Pushback: "-1"}}, code: codes.Unavailable, attempts: 1},
	{name: "a fatal code ends the call", policy: hedged, script: []step{{After: 30_000}, {Code: codes.InvalidArgument}}, code: codes.InvalidArgument, attempts: 2, cancelled: 1, gaps: []int64{50}},
	{name: "retries", policy: retried, script: []step{{Code: codes.Unavailable}, {Code: codes.Unavailable}, {}}, attempts: 3, gaps: []int64{5, 5}},
	{name: "no more retries than allowed", policy: retried, script: []step{{Code: codes.Unavailable}}, code: codes.Unavailable, attempts: 3, gaps: []int64{5, 5}},
	{name: "a pushback replaces the back-off", policy: retried, script: []step{{Code: codes.Unavailable, Pushback: "400"}, {}}, attempts: 2, gaps: []int64{395}},
	{name: "a pushback stops retries", policy: retried, script: []step{{Code: codes.Unavailable, Pushback: "-1"}}, code: codes.Unavailable, attempts: 1},
}

// ourClient hedges and retries calls of their server.
func ourClient(ctx context.Context) (err error) {
	p, err := startPeer(ctx, "server")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	var hello struct{ Port int }
	if err := p.hear(&hello); err != nil {
		return err
	}
	for _, c := range clientCases {
		for _, method := range []string{"Get", "List"} {
			conn, err := dial(hello.Port, c.policy)
			if err != nil {
				return err
			}
			script, err := json.Marshal(c.script)
			if err != nil {
				return err
			}
			name := method + ", " + c.name
			call := metadata.AppendToOutgoingContext(ctx, "call", name, "script", string(script))
			got := invoke(call, conn, method)
			// Their server tells of each attempt when that has ended, cancelled ones included.
			records := make([]record, c.attempts)
			for i := range records {
				if err := p.hear(&records[i]); err != nil {
					return err
				}
			}
			if err := conn.Close(); err != nil {
				return err
			}
			if err := check(name, records, c.gaps, c.cancelled); err != nil {
				return err
			}
			if status.Code(got) != c.code {
				return fmt.Errorf("%s: %w, want %v", name, got, c.code)
			}
			fmt.Printf("  %s: ok\n", name)
		}
	}
	return nil
}

// dial makes a channel with a Client of its own.
func dial(port int, policy string) (*grpc.ClientConn, error) {
	config, err := grpcmw.ParseServiceConfig(policy)
	if err != nil {
		return nil, err
	}
	options, err := grpcmw.DialOptions(grpcmw.WithServiceConfig(config), grpcmw.HedgeStreams("/shop.Stock/List"))
	if err != nil {
		return nil, err
	}
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return grpc.NewClient("127.0.0.1:"+strconv.Itoa(port), options...)
}

// invoke makes one call.
func invoke(ctx context.Context, conn *grpc.ClientConn, method string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, reply := wrapperspb.Bytes([]byte("stock")), new(wrapperspb.BytesValue)
	if method == "Get" {
		if err := conn.Invoke(ctx, "/shop.Stock/Get", request, reply); err != nil {
			return err
		}
	} else {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/shop.Stock/List")
		if err != nil {
			return err
		}
		if err := errors.Join(stream.SendMsg(request), stream.CloseSend(), stream.RecvMsg(reply)); err != nil {
			return err
		}
	}
	if got := string(reply.GetValue()); got != "stock" {
		return fmt.Errorf("the reply is %q", got)
	}
	return nil
}

// check compares what their server has seen.
func check(name string, records []record, gaps []int64, cancelled int) error {
	slices.SortFunc(records, func(a, b record) int { return slices.Compare(a.Previous, b.Previous) })
	for i, r := range records {
		var want []string
		if i > 0 {
			want = []string{strconv.Itoa(i)}
		}
		switch {
		case r.Call != name:
			return fmt.Errorf("%s: an attempt of %q came", name, r.Call)
		case !slices.Equal(r.Previous, want):
			return fmt.Errorf("%s: attempt %d came with %q previous ones, want %q", name, i+1, r.Previous, want)
		case i > 0 && r.At-records[i-1].At < gaps[i-1]:
			return fmt.Errorf("%s: attempt %d came after %d ms, want %d at least", name, i+1, r.At-records[i-1].At, gaps[i-1])
		}
		if r.Cancelled {
			cancelled--
		}
	}
	if cancelled != 0 {
		return fmt.Errorf("%s: %d more attempts should have been cancelled: %+v", name, cancelled, records)
	}
	return nil
}

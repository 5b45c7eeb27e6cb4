package grpcmw_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

const ms = time.Millisecond

// H1, H2: the worked example of gRFC A6. Permits in flight are what is outstanding.
func TestHedgesFollowEachOtherByTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{after: 1600 * ms}), config(t, `{"methodConfig": [{
			"name": [{}], "hedgingPolicy": {"maxAttempts": 4, "hedgingDelay": "0.5s"}}]}`))
		defer s.close()
		done := make(chan error)
		go func() {
			_, err := s.get(t.Context())
			done <- err
		}()
		for i, at := range []time.Duration{1, 501, 1001, 1501} {
			time.Sleep(at*ms - time.Since(s.backend.began))
			synctest.Wait()
			if running, permits := s.backend.now(), s.limiter.InFlight(); running != i+1 || permits != i+1 {
				t.Errorf("at %d ms %d attempts run and %d permits are out; want %d", at, running, permits, i+1)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 500 * ms, 1000 * ms, 1500 * ms}
		if got := s.backend.times(); !slices.Equal(got, want) {
			t.Errorf("the attempts came at %v; want %v", got, want)
		}
	})
}

const (
	threeHedges = `{"methodConfig": [{"name": [{}], "hedgingPolicy": {
		"maxAttempts": 3, "hedgingDelay": "0.1s", "nonFatalStatusCodes": ["UNAVAILABLE", "INTERNAL"]}}]}`
	threeAtOnce = `{"methodConfig": [{"name": [{}], "hedgingPolicy": {
		"maxAttempts": 3, "nonFatalStatusCodes": ["UNAVAILABLE"]}}]}`
	fourRetries = `{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "0.3s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["UNAVAILABLE"]}}]}`
)

// policyCase is one call under a policy.
type policyCase struct {
	name     string // begins with the rule
	config   string
	scripts  []script
	deadline time.Duration // of the caller; 0 is none

	attempts []time.Duration // when they come
	code     codes.Code
	answer   int // the attempt whose reply or status the caller gets, from 0; −1 is none
	at       time.Duration
}

var policyCases = []policyCase{
	{
		name: "H3 without a delay all attempts come at once", config: threeAtOnce,
		scripts:  []script{{after: 30 * ms}, {after: 10 * ms}, {after: 20 * ms}},
		attempts: []time.Duration{0, 0, 0}, answer: 1, at: 10 * ms,
	},
	{
		name: "H4 the first success is the call's, and no further attempt comes", config: threeHedges,
		scripts:  []script{{after: time.Second}, {after: 50 * ms}},
		attempts: []time.Duration{0, 100 * ms}, answer: 1, at: 150 * ms,
	},
	{
		name: "H5 after a failure that is not fatal the next attempt comes at once, and the delay runs from there", config: threeHedges,
		scripts:  []script{{after: 30 * ms, code: codes.Unavailable}, {after: time.Second}, {after: 20 * ms}},
		attempts: []time.Duration{0, 30 * ms, 130 * ms}, answer: 2, at: 150 * ms,
	},
	{
		name: "H6 with no attempt left a failure waits for those that run", config: threeHedges,
		scripts:  []script{{after: 400 * ms}, {after: 10 * ms, code: codes.Internal}, {after: 10 * ms, code: codes.Internal}},
		attempts: []time.Duration{0, 100 * ms, 110 * ms}, answer: 0, at: 400 * ms,
	},
	{
		name: "H7 when all have failed the last to fail has the word", config: threeHedges,
		scripts:  []script{{after: 300 * ms, code: codes.Internal}, {after: 10 * ms, code: codes.Unavailable}, {after: 10 * ms, code: codes.Unavailable}},
		attempts: []time.Duration{0, 100 * ms, 110 * ms}, code: codes.Internal, answer: 0, at: 300 * ms,
	},
	{
		name: "H8 a fatal failure ends the call though others might succeed", config: threeHedges,
		scripts:  []script{{after: 300 * ms}, {after: 10 * ms, code: codes.NotFound}},
		attempts: []time.Duration{0, 100 * ms}, code: codes.NotFound, answer: 1, at: 110 * ms,
	},
	{
		name: "H8 a fatal failure has the word, not one that follows it in number", config: threeHedges,
		scripts:  []script{{after: 150 * ms, code: codes.NotFound}, {after: 10 * ms, code: codes.Unavailable}, {after: time.Second}},
		attempts: []time.Duration{0, 100 * ms, 110 * ms}, code: codes.NotFound, answer: 0, at: 150 * ms,
	},
	{
		name: "H9 a fatal failure wins over its pushback", config: threeHedges,
		scripts:  []script{{after: 10 * ms, code: codes.NotFound, pushback: []string{"5"}}},
		attempts: []time.Duration{0}, code: codes.NotFound, answer: 0, at: 10 * ms,
	},
	{
		name: "H10 after a negative pushback no attempt comes, and the others go on", config: threeHedges,
		scripts:  []script{{after: 400 * ms}, {after: 10 * ms, code: codes.Unavailable, pushback: []string{"-1"}}},
		attempts: []time.Duration{0, 100 * ms}, answer: 0, at: 400 * ms,
	},
	{
		name: "H12 a pushback that cannot be read stops", config: threeHedges,
		scripts:  []script{{after: 10 * ms, code: codes.Unavailable, pushback: []string{"+5"}}},
		attempts: []time.Duration{0}, code: codes.Unavailable, answer: 0, at: 10 * ms,
	},
	{
		name: "H12 more values than one stop", config: threeHedges,
		scripts:  []script{{after: 10 * ms, code: codes.Unavailable, pushback: []string{"5", "5"}}},
		attempts: []time.Duration{0}, code: codes.Unavailable, answer: 0, at: 10 * ms,
	},
	{
		name: "H11 a pushback later than the delay replaces it, and the delay runs on from there", config: threeHedges,
		scripts:  []script{{after: 10 * ms, code: codes.Unavailable, pushback: []string{"250"}}, {after: time.Second}, {after: 10 * ms}},
		attempts: []time.Duration{0, 260 * ms, 360 * ms}, answer: 2, at: 370 * ms,
	},
	{
		name: "H11 a pushback sooner than the delay replaces it", config: threeHedges,
		scripts:  []script{{after: 10 * ms, code: codes.Unavailable, pushback: []string{"20"}}, {after: 10 * ms}},
		attempts: []time.Duration{0, 30 * ms}, answer: 1, at: 40 * ms,
	},
	{
		name: "H11 a pushback of 0 is now", config: threeHedges,
		scripts:  []script{{after: 10 * ms, code: codes.Unavailable, pushback: []string{"0"}}, {after: 10 * ms}},
		attempts: []time.Duration{0, 10 * ms}, answer: 1, at: 20 * ms,
	},
	{
		name: "H11 with no attempt left a pushback says nothing", config: threeHedges,
		scripts:  []script{{after: 300 * ms}, {after: 300 * ms}, {after: 10 * ms, code: codes.Unavailable, pushback: []string{"1000"}}},
		attempts: []time.Duration{0, 100 * ms, 200 * ms}, answer: 0, at: 300 * ms,
	},
	{
		name: "H13 the deadline covers all attempts", config: threeHedges,
		scripts: []script{{after: time.Hour}}, deadline: 250 * ms,
		attempts: []time.Duration{0, 100 * ms, 200 * ms}, code: codes.DeadlineExceeded, answer: -1, at: 250 * ms,
	},
	{
		name: "H13 a deadline sooner than the delay lets no hedge through", config: threeHedges,
		scripts: []script{{after: time.Hour}}, deadline: 99 * ms,
		attempts: []time.Duration{0}, code: codes.DeadlineExceeded, answer: -1, at: 99 * ms,
	},
	{
		name: "R1 R7 the back-off doubles up to its maximum, and the first attempt counts", config: fourRetries,
		scripts:  []script{{after: 10 * ms, code: codes.Unavailable}},
		attempts: []time.Duration{0, 110 * ms, 320 * ms, 630 * ms}, code: codes.Unavailable, answer: 3, at: 640 * ms,
	},
	{
		name: "R2 other codes are not retried", config: fourRetries,
		scripts:  []script{{after: 10 * ms, code: codes.Unavailable}, {after: 10 * ms, code: codes.Internal}},
		attempts: []time.Duration{0, 110 * ms}, code: codes.Internal, answer: 1, at: 120 * ms,
	},
	{
		name: "R3 a back-off beyond the deadline ends the call at once", config: fourRetries,
		scripts: []script{{after: 10 * ms, code: codes.Unavailable}}, deadline: 200 * ms,
		attempts: []time.Duration{0, 110 * ms}, code: codes.Unavailable, answer: 1, at: 120 * ms,
	},
	{
		name: "R3 the deadline covers a retry that runs", config: fourRetries,
		scripts: []script{{after: 10 * ms, code: codes.Unavailable}, {after: time.Hour}}, deadline: 200 * ms,
		attempts: []time.Duration{0, 110 * ms}, code: codes.DeadlineExceeded, answer: -1, at: 200 * ms,
	},
	{
		name: "R4 a pushback replaces the back-off, and the next one begins anew", config: fourRetries,
		scripts: []script{
			{after: 10 * ms, code: codes.Unavailable},
			{after: 10 * ms, code: codes.Unavailable, pushback: []string{"7"}},
			{after: 10 * ms, code: codes.Unavailable}, {},
		},
		attempts: []time.Duration{0, 110 * ms, 127 * ms, 237 * ms}, answer: 3, at: 237 * ms,
	},
	{
		name: "R4 a negative pushback ends the retries", config: fourRetries,
		scripts:  []script{{after: 10 * ms, code: codes.Unavailable, pushback: []string{"-1"}}},
		attempts: []time.Duration{0}, code: codes.Unavailable, answer: 0, at: 10 * ms,
	},
	{
		name: "R5 a call whose headers have come is not retried", config: fourRetries,
		scripts:  []script{{after: 10 * ms, headers: true, code: codes.Unavailable}},
		attempts: []time.Duration{0}, code: codes.Unavailable, answer: 0, at: 10 * ms,
	},
	{
		name: "the timeout of the method bounds the call", config: `{"methodConfig": [{"name": [{}], "timeout": "0.15s", "hedgingPolicy": {
			"maxAttempts": 3, "hedgingDelay": "0.1s"}}]}`,
		scripts: []script{{after: time.Hour}}, deadline: time.Minute,
		attempts: []time.Duration{0, 100 * ms}, code: codes.DeadlineExceeded, answer: -1, at: 150 * ms,
	},
	{
		name: "the timeout bounds a call that is sent once too", config: `{"methodConfig": [{"name": [{}], "timeout": "0.15s"}]}`,
		scripts:  []script{{after: time.Hour}},
		attempts: []time.Duration{0}, code: codes.DeadlineExceeded, answer: -1, at: 150 * ms,
	},
}

// Each row also shows H18, the number of the previous attempts, and that the channel, which
// has retries of its own, sends nothing beyond them: H17, H20.
func TestPoliciesAreObeyed(t *testing.T) {
	for _, c := range policyCases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, inTurn(c.scripts...), config(t, c.config), unjittered)
				defer s.close()
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				reply, err := s.get(ctx)
				if at := time.Since(s.backend.began); at != c.at {
					t.Errorf("the call returned at %v; want %v", at, c.at)
				}
				synctest.Wait()
				if n := s.backend.now(); n != 0 {
					t.Errorf("%d attempts go on after the call", n) // H4, H8, H14
				}
				if got := s.backend.times(); !slices.Equal(got, c.attempts) {
					t.Errorf("the attempts came at %v; want %v", got, c.attempts)
				}
				var numbers, want []string // those sent in one instant may overtake each other
				for i, a := range s.backend.seen() {
					numbers = append(numbers, strings.Join(a.number, " and "))
					if want = append(want, ""); i > 0 {
						want[i] = strconv.Itoa(i)
					}
				}
				slices.Sort(numbers)
				if !slices.Equal(numbers, want) {
					t.Errorf("the attempts came with the numbers %q; want %q", numbers, want)
				}
				if status.Code(err) != c.code {
					t.Fatalf("the call ended with %v; want %v", err, c.code)
				}
				switch {
				case c.code == codes.OK && int(reply.GetValue()[0]) != c.answer:
					t.Errorf("the reply is of attempt %d; want %d", reply.GetValue()[0], c.answer)
				case c.code != codes.OK && c.answer >= 0 && attemptOf(t, err) != c.answer:
					t.Errorf("the status is of attempt %d; want %d", attemptOf(t, err), c.answer)
				}
				if st := s.client.Stats(); st.Attempts != uint64(len(c.attempts)) || st.ChannelRetries != 0 {
					t.Errorf("%d attempts were sent and %d retries of the channel; want %d and 0", st.Attempts, st.ChannelRetries, len(c.attempts))
				}
			})
		})
	}
}

// H8: of failures in one instant the fatal one has the word, whichever is heard of last.
func TestFatalFailureHasTheWordInItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, func(n int, _ arrival) script {
			return []script{{after: 110 * ms, code: codes.NotFound}, {after: 10 * ms, code: codes.Unavailable}}[n%2]
		}, config(t, `{"methodConfig": [{"name": [{}], "hedgingPolicy": {
			"maxAttempts": 2, "hedgingDelay": "0.1s", "nonFatalStatusCodes": ["UNAVAILABLE"]}}]}`))
		defer s.close()
		for range 300 {
			_, err := s.get(t.Context())
			if status.Code(err) != codes.NotFound {
				t.Fatal(err)
			}
		}
	})
}

// H14: what the application cancels is cancelled in every attempt, and nothing more comes.
func TestCancellingReachesEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{after: time.Hour}), config(t, threeHedges))
		defer s.close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(150*ms, cancel)
		_, err := s.get(ctx)
		synctest.Wait()
		if status.Code(err) != codes.Canceled || time.Since(s.backend.began) != 150*ms {
			t.Errorf("the call ended after %v with %v", time.Since(s.backend.began), err)
		}
		if n := s.backend.now(); n != 0 || len(s.backend.seen()) != 2 {
			t.Errorf("%d of %d attempts go on", n, len(s.backend.seen()))
		}
	})
}

// R8: each retry holds a permit of its own, and none is held between.
func TestNoPermitIsHeldDuringABackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, inTurn(script{after: 10 * ms, code: codes.Unavailable}, script{after: 10 * ms}), config(t, fourRetries), unjittered)
		defer s.close()
		go func() {
			if _, err := s.get(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		for at, want := range map[time.Duration]int{5 * ms: 1, 50 * ms: 0, 115 * ms: 1, 125 * ms: 0} {
			time.AfterFunc(at, func() {
				if n := s.limiter.InFlight(); n != want {
					t.Errorf("%d permits are out at %v; want %d", n, at, want)
				}
			})
		}
		time.Sleep(time.Second)
	})
}

// R1: the jitter is a fifth.
func TestBackoffHasItsJitter(t *testing.T) {
	for _, random := range []float64{0, 0.999} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, inTurn(script{code: codes.Unavailable}, script{}), config(t, fourRetries),
				configured(func(c *hedgedlimit.Config) { c.Rand = func() float64 { return random } }))
			defer s.close()
			if _, err := s.get(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := time.Duration((0.8 + 0.4*random) * float64(100*ms))
			if at := s.backend.times()[1]; (at - want).Abs() > time.Microsecond {
				t.Errorf("the retry came after %v; want %v", at, want)
			}
		})
	}
}

// A method without a policy is sent once, whatever it answers; so B43 holds by default.
func TestWithoutAPolicyACallIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, always(script{after: time.Minute, code: codes.Unavailable}))
		defer s.close()
		if _, err := s.get(t.Context()); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
		if n := len(s.backend.seen()); n != 1 {
			t.Errorf("%d attempts were sent", n)
		}
	})
}

// B43: of the methods without a policy only those on the list are hedged, and each by the
// delay that it has learnt itself.
func TestOnlyMethodsOnTheListAreHedged(t *testing.T) {
	const other = "/shop.Stock/Order"
	synctest.Test(t, func(t *testing.T) {
		slow := false
		s := newService(t, func(_ int, a arrival) script {
			if slow {
				return script{after: time.Minute}
			}
			return script{after: 10 * ms}
		}, grpcmw.Hedgeable(get), configured(func(c *hedgedlimit.Config) { c.Gates = hedgedlimit.NoGates }))
		defer s.close()
		call := func(method string) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
			defer cancel()
			_ = s.invoke(ctx, method)
		}
		for range 200 {
			call(get)
			call(other)
		}
		slow = true
		before := len(s.backend.seen())
		call(get)
		call(other)
		synctest.Wait()
		sent := map[string]int{}
		for _, a := range s.backend.seen()[before:] {
			sent[a.method]++
		}
		if sent[get] != 2 || sent[other] != 1 {
			t.Errorf("the attempts of the slow calls were %v", sent)
		}
	})
}

// H18: the number of attempts that a proxy has passed on is another call's, also for calls
// that are sent once.
func TestForeignNumberOfAttemptsIsTakenOut(t *testing.T) {
	for kind, policy := range map[string]string{"once": `{}`, "hedged": threeHedges, "retried": fourRetries} {
		for _, method := range allKinds {
			t.Run(kind+" "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newService(t, always(script{}), config(t, policy))
					defer s.close()
					ctx := metadata.AppendToOutgoingContext(t.Context(), "grpc-previous-rpc-attempts", "3")
					if method == get {
						_, _ = s.get(ctx)
					} else {
						_, _ = s.receive(ctx, method)
					}
					if seen := s.backend.seen(); len(seen) != 1 || seen[0].number != nil {
						t.Errorf("the server saw %v", seen)
					}
				})
			})
		}
	}
}

// unjittered makes back-offs what they are before the jitter.
var unjittered = configured(func(c *hedgedlimit.Config) { c.Rand = func() float64 { return 0.5 } })

// attemptOf returns which attempt a status of the backend is of, by its details.
func attemptOf(t *testing.T, err error) int {
	t.Helper()
	details := status.Convert(err).Details()
	if len(details) != 1 {
		t.Fatalf("%v has %d details", err, len(details))
	}
	return int(details[0].(interface{ GetValue() int64 }).GetValue())
}

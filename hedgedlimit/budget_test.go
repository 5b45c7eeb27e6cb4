package hedgedlimit_test

import (
	"context"
	"math"
	"math/big"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

func newBudget(t interface{ Fatal(...any) }, config hedgedlimit.RatioConfig) *hedgedlimit.RatioBudget {
	b, err := hedgedlimit.NewRatioBudget(config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The account is exact: ten deposits of a tenth are one attempt, and not a little
// less, however often.
func TestTenDepositsOfATenthAreOneAttempt(t *testing.T) {
	now := time.Now()
	b := newBudget(t, hedgedlimit.RatioConfig{PerSecond: -1, Burst: 1})
	if !b.Withdraw(now) || b.Withdraw(now) {
		t.Fatal("the account does not begin with its burst")
	}
	for range 1000 {
		for i := range 10 {
			if b.Withdraw(now) {
				t.Fatalf("%d deposits of a tenth bought an attempt", i)
			}
			b.Deposit(now)
		}
		if !b.Withdraw(now) {
			t.Fatal("ten deposits of a tenth did not buy an attempt")
		}
	}
}

// Likewise for time: a nanosecond's worth is never lost to rounding.
func TestTimePaysInExactly(t *testing.T) {
	for _, perSecond := range []float64{1, 0.3, 3, 0.001} {
		now := time.Now()
		b := newBudget(t, hedgedlimit.RatioConfig{PerSecond: perSecond, Burst: 1})
		b.Withdraw(now)
		// In 7 ns steps the payment of one is no whole unit of the account.
		whole := time.Duration(math.Ceil(float64(time.Second) / perSecond))
		for range 1000 {
			now = now.Add(7)
			if b.Withdraw(now) {
				t.Fatalf("%v/s: an attempt after 7 µs", perSecond)
			}
		}
		now = now.Add(whole - 7000 - 1)
		if b.Withdraw(now) {
			t.Errorf("%v/s: an attempt 1 ns too early", perSecond)
		}
		now = now.Add(1)
		if !b.Withdraw(now) {
			t.Errorf("%v/s: no attempt after %v: balance %v", perSecond, whole, b.Balance(now))
		}
	}
}

func TestClockThatGoesBackPaysNothing(t *testing.T) {
	start := time.Now()
	b := newBudget(t, hedgedlimit.RatioConfig{Ratio: 1e-9, Burst: 1})
	b.Withdraw(start)
	for range 1000 { // to and fro, never beyond half a second
		if b.Withdraw(start.Add(-time.Hour)) || b.Withdraw(start.Add(500*ms)) {
			t.Fatal("a clock that goes to and fro buys attempts")
		}
	}
	if b.Withdraw(start.Add(999*ms)) || !b.Withdraw(start.Add(time.Second)) {
		t.Error("after the clock has gone on, time pays as ever")
	}
}

func TestUnlimitedHasNoBound(t *testing.T) {
	now := time.Now()
	for range 1000 {
		if !hedgedlimit.Unlimited.Withdraw(now) {
			t.Fatal("refused")
		}
	}
	hedgedlimit.Unlimited.Deposit(now)
	hedgedlimit.Unlimited.Refund(now)
	if n := hedgedlimit.Unlimited.Balance(now); !math.IsInf(n, 1) {
		t.Errorf("balance %v", n)
	}
}

// account is a naive RatioBudget: rational numbers, and a history from which every
// bound is worked out anew.
type account struct {
	ratio, perSecond, burst, balance *big.Rat
	last                             time.Time
}

func rat(f float64) *big.Rat {
	// The account rounds its rates to a billionth.
	return big.NewRat(int64(math.Round(f*1e9)), 1e9)
}

func (a *account) pay(amount *big.Rat) {
	a.balance.Add(a.balance, amount)
	if a.balance.Cmp(a.burst) > 0 {
		a.balance.Set(a.burst)
	}
}

func (a *account) advance(now time.Time) {
	if d := now.Sub(a.last); d > 0 {
		a.pay(new(big.Rat).Mul(a.perSecond, big.NewRat(int64(d), int64(time.Second))))
		a.last = now
	}
}

// Below the traffic that raises the cap, the account is that of the naive model.
// Fractions of its unit, a billionth, may come in later than in the model.
func TestBudgetAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := hedgedlimit.RatioConfig{
			Ratio:     rapid.Float64Range(0.001, 1).Draw(t, "ratio"),
			PerSecond: rapid.Float64Range(0.001, 100).Draw(t, "per second"),
			Burst:     rapid.IntRange(1, 20).Draw(t, "burst"),
		}
		now := time.Now()
		b := newBudget(t, config)
		m := &account{ratio: rat(config.Ratio), perSecond: rat(config.PerSecond), burst: big.NewRat(int64(config.Burst), 1), balance: big.NewRat(int64(config.Burst), 1), last: now}
		b.Balance(now)
		one := big.NewRat(1, 1)
		deposits := 0 // in this second; the cap follows more than a burst of them
		unit := big.NewRat(1, 1e9)
		t.Repeat(map[string]func(*rapid.T){
			"deposit": func(t *rapid.T) {
				if float64(deposits+1)*config.Ratio > float64(config.Burst) {
					t.Skip("the cap would rise")
				}
				deposits++
				m.advance(now)
				m.pay(m.ratio)
				b.Deposit(now)
			},
			"withdraw": func(t *rapid.T) {
				m.advance(now)
				ok := b.Withdraw(now)
				short := new(big.Rat).Sub(one, m.balance) // what the model lacks
				switch {
				case ok && short.Sign() > 0:
					t.Fatalf("an attempt with a balance of %v", m.balance.FloatString(12))
				case !ok && short.Cmp(new(big.Rat).Neg(unit)) <= 0:
					t.Fatalf("no attempt with a balance of %v", m.balance.FloatString(12))
				}
				if ok {
					m.balance.Sub(m.balance, one)
				}
			},
			"refund": func(t *rapid.T) { m.advance(now); m.pay(one); b.Refund(now) },
			"wait": func(t *rapid.T) {
				d := time.Duration(rapid.Int64Range(1, int64(3*time.Second)).Draw(t, "time"))
				now = now.Add(d)
				if d >= time.Second {
					deposits = 0
				}
			},
			"": func(t *rapid.T) {
				m.advance(now)
				want, _ := m.balance.Float64()
				if got := b.Balance(now); math.Abs(got-want) > 2e-9*(1+want) {
					t.Fatalf("balance %v, the model has %v", got, want)
				}
			},
		})
	})
}

// Law L9: over any window, extra attempts are at most cap + Ratio·n + PerSecond·t,
// whatever comes in whatever order and however far apart.
func TestExtraAttemptsStayWithinTheBudgetOverAnyWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := hedgedlimit.RatioConfig{
			Ratio:     rapid.SampledFrom([]float64{0.01, 0.1, 0.25, 1}).Draw(t, "ratio"),
			PerSecond: rapid.SampledFrom([]float64{-1, 0.5, 1, 50}).Draw(t, "per second"),
			Burst:     rapid.IntRange(1, 5).Draw(t, "burst"),
		}
		b := newBudget(t, config)
		type moment struct {
			at       time.Time
			deposits int
			extra    int
		}
		start := time.Now()
		history := []moment{{at: start}}
		h := history[0]
		busiest := 0.0 // the most primaries that any second had
		seconds := map[int64]float64{}
		for range rapid.IntRange(1, 60).Draw(t, "bursts") {
			h.at = h.at.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "pause")))
			for range rapid.IntRange(0, 30).Draw(t, "primaries") {
				b.Deposit(h.at)
				h.deposits++
				second := int64(h.at.Sub(start) / time.Second)
				seconds[second]++
				// A second of the account's is within two of these.
				busiest = max(busiest, seconds[second]+seconds[second-1])
			}
			for range rapid.IntRange(0, 10).Draw(t, "hedges") {
				if b.Withdraw(h.at) {
					h.extra++
					if rapid.Bool().Draw(t, "skipped") {
						b.Refund(h.at)
						h.extra--
					}
				}
			}
			history = append(history, h)
		}
		// The cap is a burst, or what the busiest second has paid in.
		most := max(float64(config.Burst), config.Ratio*busiest)
		for i, from := range history {
			for _, to := range history[i:] {
				bound := most + config.Ratio*float64(to.deposits-from.deposits) + max(config.PerSecond, 0)*to.at.Sub(from.at).Seconds()
				if extra := float64(to.extra - from.extra); extra > bound+1e-6 {
					t.Fatalf("%v extra attempts in %v with %d primaries, at most %v are allowed",
						extra, to.at.Sub(from.at), to.deposits-from.deposits, bound)
				}
			}
		}
	})
}

func TestBudgetIsSafeForConcurrentUse(t *testing.T) {
	b := newBudget(t, hedgedlimit.RatioConfig{PerSecond: -1})
	now := time.Now()
	var wg sync.WaitGroup
	taken := make([]int, 8)
	for i := range taken {
		wg.Go(func() {
			for range 1000 {
				b.Deposit(now)
				if b.Withdraw(now) {
					taken[i]++
				}
				b.Balance(now)
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range taken {
		sum += n
	}
	// What no cap has cut off: 3 at first, a tenth of 8,000.
	if sum > 803 || float64(sum)+b.Balance(now) > 803+1e-9 {
		t.Errorf("%d taken, balance %v", sum, b.Balance(now))
	}
}

// Field case B50 (a): when all latencies shift, the budget holds the extra attempts
// within its share in every slice of ten seconds.
func TestShiftOfAllLatenciesMakesNoHedgeStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{
			Limiter: newLimiter(t, 1000, limiter.Config{}),
			Budget:  newBudget(t, hedgedlimit.RatioConfig{Ratio: 0.1, PerSecond: -1, Burst: 3}),
		})
		const rate = 200 // calls a second
		latency := 10 * ms
		before := h.Stats()
		slice := func() {
			now := h.Stats()
			calls := float64(now.Calls - before.Calls)
			extra := float64(now.Started[limiter.Hedge] - before.Started[limiter.Hedge])
			// The cap: a tenth of one second's primaries may have been saved up.
			if extra > 0.1*calls+0.1*rate {
				t.Errorf("%v extra attempts for %v calls", extra, calls)
			}
			before = now
		}
		var wg sync.WaitGroup
		for i := range 20_000 {
			if i == 10_000 {
				latency = 200 * ms
			}
			takes := latency
			wg.Go(func() {
				_, err := hedgedlimit.Do(t.Context(), h, func(ctx context.Context, _ hedgedlimit.Attempt) (int, error) {
					select {
					case <-time.After(takes):
					case <-ctx.Done():
					}
					return 0, ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Second / rate)
			if i%(10*rate) == 10*rate-1 {
				slice()
			}
		}
		wg.Wait()
		synctest.Wait()
		if s := h.Stats(); s.Started[limiter.Hedge] < 900 || s.Started[limiter.Hedge] > 1003+0.1*rate {
			t.Errorf("%d hedges for 10,000 slow calls", s.Started[limiter.Hedge])
		}
		probe(t, h)
	})
}

// Field case B50 (b): a small service may hedge, too.
func TestFewSlowCallsOfASmallServiceAreHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHedger(t, hedgedlimit.Config{Budget: newBudget(t, hedgedlimit.RatioConfig{})})
		for i := range 100 {
			steps := []step{{takes: 10 * ms}}
			expect := want{result: 1, at: 10 * ms, started: []time.Duration{0}}
			if i%20 == 0 {
				steps = []step{{takes: time.Second}, {takes: 10 * ms}}
				expect = want{result: 2, at: 60 * ms, started: []time.Duration{0, 50 * ms}}
			}
			run(t, t.Context(), h, expect, steps...)
		}
		synctest.Wait()
		probe(t, h)
	})
}

// Field case B50 (c): calls that slow down together share one account, so which of
// them ask first does not change how many may hedge.
func TestCallsThatSlowDownTogetherShareOneAccount(t *testing.T) {
	for round := range 20 {
		synctest.Test(t, func(t *testing.T) {
			h := newHedger(t, hedgedlimit.Config{Budget: newBudget(t, hedgedlimit.RatioConfig{PerSecond: -1})})
			var wg sync.WaitGroup
			for i := range 6 {
				time.Sleep(time.Duration((i*7+round)%3) * ms)
				wg.Go(func() {
					_, _ = hedgedlimit.Do(t.Context(), h, func(context.Context, hedgedlimit.Attempt) (int, error) {
						time.Sleep(80 * ms)
						return 0, nil
					})
				})
			}
			wg.Wait()
			settle(time.Second)
			// 3 at first; the account was full, so the six tenths were cut off.
			if s := h.Stats(); s.Started[limiter.Hedge] != 3 || s.Skipped[hedgedlimit.SkipBudget] != 3 {
				t.Errorf("%+v", s)
			}
			probe(t, h)
		})
	}
}

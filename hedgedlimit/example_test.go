package hedgedlimit_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
)

// The primary hangs; a hedge answers. It is sent at once here, and for certain: the
// gates would have to learn first that it pays.
func ExampleDo() {
	hedger, err := hedgedlimit.New(hedgedlimit.Config{Delay: hedgedlimit.Fixed(0), Gates: hedgedlimit.NoGates})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := hedgedlimit.Do(context.Background(), hedger,
		func(ctx context.Context, a hedgedlimit.Attempt) (string, error) {
			if a.Kind() == limiter.Primary {
				<-ctx.Done() // ends when the call is decided without it
				return "", ctx.Err()
			}
			return fmt.Sprintf("attempt %d", a.Number()), nil
		})
	fmt.Println(answer, err)

	// The loser holds its permit until it has returned. Close waits for it.
	if err := hedger.Close(context.Background()); err != nil {
		fmt.Println(err)
	}
	s := hedger.Stats()
	fmt.Println("hedges started:", s.Started[limiter.Hedge], "won:", s.Won[limiter.Hedge])
	fmt.Println("in flight:", hedger.Limiter().InFlight())
	// Output:
	// attempt 2 <nil>
	// hedges started: 1 won: 1
	// in flight: 0
}

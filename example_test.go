package holdfast_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

// One line limits and hedges an HTTP client.
func Example_http() {
	tr, err := httpmw.NewTransport(http.DefaultTransport)
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: tr}
	_ = client // use it as any other; close every response body
}

// One line limits anything else, with a limit that finds itself.
func Example_limiter() {
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lim.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("in flight:", lim.InFlight())
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// in flight: 1
	// error: <nil>
}

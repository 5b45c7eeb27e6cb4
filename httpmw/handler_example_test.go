package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

func ExampleNewHandler() {
	// A fixed limit of one, so that the example prints the same each time; a program
	// leaves HandlerLimiter out.
	algorithm, err := gradient.NewFixed(1)
	if err != nil {
		panic(err)
	}
	one, err := limiter.New(limiter.Config{Algorithm: algorithm})
	if err != nil {
		panic(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	var handler *httpmw.Handler
	get := func(path string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Printf("%s: %d %s", path, w.Code, w.Body)
	}
	mux.HandleFunc("GET /work", func(w http.ResponseWriter, _ *http.Request) {
		// While this one runs there is no permit for another.
		get("/more")
		get("/health")
		fmt.Println()
		_, _ = io.WriteString(w, "done")
	})
	handler, err = httpmw.NewHandler(mux, httpmw.HandlerLimiter(one),
		httpmw.Exempt(func(r *http.Request) bool { return r.URL.Path == "/health" }))
	if err != nil {
		panic(err)
	}
	// A permit is held while a body is read and an answer written, so a client that is slow
	// at either must not take for ever.
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
	}
	_ = server // server.ListenAndServe()

	get("/work")
	// Output:
	// /more: 503 overloaded, try again later
	// /health: 200 ok
	// /work: 200 done
}

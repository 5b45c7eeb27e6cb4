module github.com/holdfast-go/holdfast

go 1.25.0

require (
	github.com/prometheus/client_golang v1.19.1
	golang.org/x/sync v0.12.0
	pgregory.net/rapid v1.3.0
)

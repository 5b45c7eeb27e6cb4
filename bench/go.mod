module github.com/holdfast-go/holdfast/bench

go 1.25.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	golang.org/x/sync v0.12.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/failsafe-go/failsafe-go v0.9.7
	github.com/influxdata/tdigest v0.0.1 // indirect
)

replace github.com/holdfast-go/holdfast => ../

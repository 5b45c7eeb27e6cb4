//go:build !unix

package downstream

import "time"

func cpuTime() (time.Duration, bool) { return 0, false }

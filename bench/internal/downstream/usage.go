package downstream

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used since its start.
type Usage struct {
	// CPU is user and system time. CPUKnown is false where it cannot be read.
	CPU      time.Duration `json:"cpu_ns"`
	CPUKnown bool          `json:"cpu_known"`
	// Memory is in bytes, and MemorySource says of what kind.
	Memory       uint64 `json:"memory_bytes"`
	MemorySource string `json:"memory_source"`
}

// readUsage reads the usage of this process.
func readUsage() Usage {
	var u Usage
	u.CPU, u.CPUKnown = cpuTime()
	u.Memory, u.MemorySource = memory()
	return u
}

// memory returns the peak of resident memory where the kernel tells it, and what
// the runtime has got from the system elsewhere.
//
// The ru_maxrss of getrusage will not do: on Linux a new process inherits that of
// the one that started it.
func memory() (bytes uint64, source string) {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		if kib, ok := statusKiB(string(status), "VmHWM:"); ok {
			return kib << 10, "peak resident"
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys, "runtime.MemStats.Sys"
}

// statusKiB finds a line such as "VmHWM:  1234 kB".
func statusKiB(status, name string) (kib uint64, ok bool) {
	for line := range strings.Lines(status) {
		rest, found := strings.CutPrefix(line, name)
		if !found {
			continue
		}
		number, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		kib, err := strconv.ParseUint(number, 10, 64)
		return kib, err == nil && unit == "kB"
	}
	return 0, false
}

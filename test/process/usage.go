package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userHZ is how many ticks of /proc/PID/stat make a second: 100 on every Linux,
// whatever its kernel's own clock.
const userHZ = 100

// CPUTime is what a process has used of the CPUs so far, in user and system
// mode, to 10 ms.
func CPUTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process: %w", err)
	}
	return cpuTime(string(stat))
}

// cpuTime reads proc(5)'s utime and stime, fields 14 and 15. The second field,
// the name, may hold blanks and brackets.
func cpuTime(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the CPU time of a process: %q is no /proc/PID/stat", stat)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / userHZ, nil
}

// Fields of proc(5)'s status.
const (
	Resident = "VmRSS" // what is resident now
	Peak     = "VmHWM" // the most that ever was
)

// MemoryBytes is how much memory of a process is, or was, resident.
func MemoryBytes(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), field+":")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseInt(kib, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s of a process: %w", field, err)
	}
	return n << 10, nil
}

// LoadAverage is how many processes ran or waited for a CPU during the last
// minute.
func LoadAverage() (string, error) {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", fmt.Errorf("read the load average: %w", err)
	}
	minute, _, _ := strings.Cut(string(content), " ")
	return minute, nil
}

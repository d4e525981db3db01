package process

import (
	"runtime"
	"runtime/debug"
)

// DelayGarbageCollection delays the first garbage collection until the heap exceeds what a run with a file of size
// bytes needs, because most processes exit before that. It is called once in a process. The first collection restores
// the usual percentage.
func DelayGarbageCollection(size int64) {
	percent := gcPercent(size)
	if usual := debug.SetGCPercent(percent); usual != percent {
		runtime.AddCleanup(new([16]byte), func(usual int) { debug.SetGCPercent(usual) }, usual)
	}
}

// gcPercent returns the percentage for [debug.SetGCPercent] with which a scenario file of size bytes is loaded
// without a collection. The heap may grow to 4 MiB for each 100 percent. A byte of the file takes about 12 bytes of heap.
func gcPercent(size int64) int {
	const (
		smallest = 400
		largest  = 1600 // lets the heap grow to 64 MiB; while a bigger file is loaded, the collector runs
		perMiB   = 400
	)
	return int(min(smallest+size*perMiB>>20, largest))
}

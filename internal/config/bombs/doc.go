// Package bombs has the tests of what a file may cost. They measure time and memory, so
// they run without the race detector, apart from package config.
package bombs

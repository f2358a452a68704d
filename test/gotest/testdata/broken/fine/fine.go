// Package fine has no tests.
package fine

// Package documents has no code of its own. Its tests compare the documents
// with the code: names of tests and folders, the direction of imports, the
// libraries, and words that no document uses.
package documents

// Package page tries the web page in a real headless Chromium, against the real
// binary and a real control plane. It is a module of its own, so that what
// drives the browser never reaches the product's go.mod.
//
// The picture of the page in the README is taken anew with UPDATE=1.
package page

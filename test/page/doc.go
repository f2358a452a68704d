// Package page tries the web page in a real headless Chromium, against the real
// binary and a real control plane. It is a module of its own, so that what
// drives the browser never reaches the product's go.mod.
//
// UPDATE=1 retakes the picture of the page in the README.
package page

// Package pins holds tests of what users, dashboards, scripts and clusters rely
// on, and what must therefore stay the same when code moves from one package to
// another: names of metrics and their labels, reasons of Events, fields of JSON
// output, labels, annotations, names of objects, and what the API server is given
// to evaluate.
//
// Each test renders what the code produces and compares it with a file in
// testdata. UPDATE=1 writes those files; a change in one of them is a change that
// users see. What other tests pin already is not repeated here: the configuration
// file (configs), RBAC and the chart (test/deploy, deploy/RBAC.md), types and help
// of metrics (deploy/METRICS.md), the format of baselines (reload).
package pins

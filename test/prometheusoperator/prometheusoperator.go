// Package prometheusoperator pins the release of the Prometheus Operator whose kinds tests use:
// example/prometheus-operator-crd of its module has their definitions.
package prometheusoperator

import _ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil" // some package of it

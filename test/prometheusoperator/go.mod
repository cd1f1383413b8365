// The release of the Prometheus Operator whose kinds tests use: its module holds their definitions.
module github.com/gitfleet/gitfleet/test/prometheusoperator

go 1.26.0

tool github.com/prometheus-operator/prometheus-operator/pkg/versionutil // some package, so that the module is required

require (
	github.com/alecthomas/kingpin/v2 v2.4.0 // indirect
	github.com/alecthomas/units v0.0.0-20240927000941-0f3dac36c52b // indirect
	github.com/prometheus-operator/prometheus-operator v0.94.0 // indirect
	github.com/prometheus/common v0.71.0 // indirect
	github.com/xhit/go-str2duration/v2 v2.1.0 // indirect
)

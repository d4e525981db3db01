// Package scenarios is the scripted model: it loads a scenario (TOML, or JSON
// with the same keys), says everything that is wrong with it, and answers
// requests with what the scenario says.
//
// Its invariant: a reply depends on the scenario, the seed and the requests
// so far, on nothing else. The package knows no clock, environment, network,
// tool or process; a scripted failure is a value in [Reply], never an error.
package scenarios

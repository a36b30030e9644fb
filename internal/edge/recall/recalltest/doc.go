// Package recalltest is the suite that every index of memory passes.
package recalltest

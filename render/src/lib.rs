//! One view model, rendered for people and for machines.

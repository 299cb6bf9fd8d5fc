import type { Options } from "tsup";

export function library(options: Options): Options;

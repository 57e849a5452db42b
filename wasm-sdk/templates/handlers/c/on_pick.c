/* Choice of a worker: the one with the fewest requests in the zone of the setting `zone`. */
WEIR_EXPORT(on_pick) {
  weir_slice zone = weir_config("zone", "local");
  int64_t best = -1;
  int64_t fewest = 0;
  int64_t index = 0;
  weir_json candidates = weir_find(weir_head(), "pick.candidates");
  for (weir_json one = weir_first(candidates); one.at != 0; one = weir_next(one), index++) {
    int64_t running = weir_integer(weir_find(one, "in_flight"), 0);
    if (!weir_equal(weir_string(weir_find(one, "labels.zone")), zone)) continue;
    if (best >= 0 && running >= fewest) continue;
    best = index;
    fewest = running;
  }
  return weir_choose(best);
}

/** The public API of the package: everything that a plugin of somebody else may import, in one entry. */
export * from '#kernel'
export * from '#shared'
